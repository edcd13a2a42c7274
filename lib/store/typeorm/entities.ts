import type * as TypeORM from 'typeorm';
import { type EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';
import { requirePeer } from '../../common/load-peer.js';
import { type ColumnType, type Columns } from '../core/rows.js';
import { columnName, TABLES } from '../sql/columns.js';

/**
 * The tables as TypeORM entities, for an application that wants to read them, the same on every dialect: an entity is named
 * as its table, counters and times (milliseconds) are numbers, everything else is text, of which some is JSON. TypeORM's
 * `synchronize` and `migration:generate` leave the tables alone: they are `sessionsMigrations`' own. Never write through
 * them: order, fences and idempotency are decided by the adapter's operations.
 * @param tablePrefix that of the adapter and the migrations; default `agent_`
 */
export function sessionsEntities(tablePrefix = 'agent_'): EntitySchema[] {
  // Not imported: whoever imports this entry for something else, and has no TypeORM, must be told so by the adapter.
  const { EntitySchema } = requirePeer('typeorm') as typeof TypeORM;
  return Object.entries<Columns>(TABLES).map(([table, columns]) => {
    const name = `${tablePrefix}${table}`;
    return new EntitySchema({ name, tableName: name, synchronize: false, columns: columnOptions(columns) });
  });
}

function columnOptions(columns: Columns): Record<string, EntitySchemaColumnOptions> {
  return Object.fromEntries(Object.entries(columns).map(([property, type]) => [property, column(property, type)]));
}

/** Of types that every dialect has. */
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

/** MySQL's keys are bytes. */
function asText(value: unknown): unknown {
  return Buffer.isBuffer(value) ? value.toString() : value;
}

/** Drivers give 64-bit integers as text. */
function asNumber(value: unknown): unknown {
  return typeof value === 'string' ? Number(value) : value;
}
