import type * as TypeORM from 'typeorm';
import {
  type EntitySchema,
  type EntitySchemaColumnOptions,
  type EntitySchemaIndexOptions,
  type EntitySchemaOptions,
} from 'typeorm';
import { requirePeer } from '../../common/load-peer.js';
import { columnName, type ColumnType, type TableDefinition, TABLES } from './table-definitions.js';

/**
 * The tables as TypeORM entities, for an application that wants to read them or to generate migrations of its own
 * beside them. Never write through them: order, fences and idempotency are decided by the adapter's own operations.
 */
export function sessionsEntities(tablePrefix = 'agent_'): EntitySchema[] {
  // Not imported: whoever imports this entry for something else, and has no TypeORM, must be told so by the adapter.
  const { EntitySchema } = requirePeer('typeorm') as typeof TypeORM;
  return Object.entries<TableDefinition>(TABLES).map(
    ([name, definition]) => new EntitySchema(entity(`${tablePrefix}${name}`, definition)),
  );
}

function entity(name: string, { columns, indices = {}, withoutRowid }: TableDefinition): EntitySchemaOptions<unknown> {
  return {
    name,
    tableName: name,
    columns: Object.fromEntries(
      Object.entries<ColumnType>(columns).map(([property, type]) => [property, column(property, type)]),
    ),
    indices: Object.entries(indices).map(([index, { on, unique, where }]): EntitySchemaIndexOptions => ({
      name: `${name}_${index}`,
      columns: [...on],
      ...(unique ? { unique } : {}),
      ...(where === undefined ? {} : { where }),
    })),
    ...(withoutRowid ? { withoutRowid } : {}),
  };
}

function column(property: string, type: ColumnType): EntitySchemaColumnOptions {
  return {
    name: columnName(property),
    type: type.startsWith('text') ? 'text' : 'integer',
    ...(type.endsWith('?') ? { nullable: true } : {}),
    ...(type.endsWith('key') ? { primary: true } : {}),
  };
}
