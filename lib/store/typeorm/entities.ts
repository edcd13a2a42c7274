import type * as TypeORM from 'typeorm';
import { type EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';
import { requirePeer } from '../../common/load-peer.js';
import { type ColumnType, type Columns } from '../core/rows.js';
import { columnName, TABLES } from '../sql/columns.js';

/**
 * Returns TypeORM entities for applications that read the tables. They are the same on every dialect, and each entity has
 * the name of its table. Counters and times (in milliseconds) are numbers; all other columns are strings, some with JSON.
 * TypeORM's `synchronize` and `migration:generate` ignore these tables, because `sessionsMigrations` owns them. Never write
 * through the entities: only the adapter's operations guarantee order, fences and idempotency.
 * A DataSource with an `entityPrefix` puts it before every table name here, in the adapter and in the migrations.
 * @param tablePrefix the prefix that the adapter and the migrations use. Default `agent_`
 */
export function sessionsEntities(tablePrefix = 'agent_'): EntitySchema[] {
  // Loaded lazily: without TypeORM, this entry point must still import, and the adapter reports the missing package.
  const { EntitySchema } = requirePeer('typeorm') as typeof TypeORM;
  return Object.entries<Columns>(TABLES).map(([table, columns]) => {
    const name = `${tablePrefix}${table}`;
    return new EntitySchema({ name, tableName: name, synchronize: false, columns: columnOptions(columns) });
  });
}

function columnOptions(columns: Columns): Record<string, EntitySchemaColumnOptions> {
  return Object.fromEntries(Object.entries(columns).map(([property, type]) => [property, column(property, type)]));
}

/** Uses column types that every dialect supports. */
function column(property: string, type: ColumnType): EntitySchemaColumnOptions {
  const isText = type.startsWith('text');
  return {
    name: columnName(property),
    type: isText ? 'text' : 'bigint',
    transformer: { from: isText ? asText : asNumber, to: (value: unknown) => value },
    ...(type.endsWith('?') ? { nullable: true } : {}),
    ...(type.endsWith('key') ? { primary: true } : {}),
  };
}

/** Converts MySQL keys, which are bytes, to strings. */
function asText(value: unknown): unknown {
  return Buffer.isBuffer(value) ? value.toString() : value;
}

/** Converts 64-bit integers, which drivers return as strings or, with some settings, as bigints. */
function asNumber(value: unknown): unknown {
  return typeof value === 'string' || typeof value === 'bigint' ? Number(value) : value;
}
