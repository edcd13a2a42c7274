import { type ColumnType, type Columns, TABLES as CORE_TABLES } from '../core/rows.js';

/** The tables of a SQL store, for entities and statements. */
export const TABLES = {
  ...CORE_TABLES,
  /** The sessions that hold a surface. The session's row stores the order of attachment. */
  session_surface: { surfaceId: 'text key', userId: 'text key', sessionId: 'text key' },
  /** The migrations that have run. */
  schema: {
    version: 'integer key',
    /** The first migration whose package can still use the tables, because two versions run together during a deploy. */
    usableFrom: 'integer',
  },
} as const satisfies Readonly<Record<string, Columns>>;

export type TableName = keyof typeof TABLES;

/** Returns the columns of a table, in order. */
export function columnsOf(table: TableName): [property: string, type: ColumnType][] {
  return Object.entries<ColumnType>(TABLES[table]);
}

/** Returns the name of a property's column, in snake case. */
export function columnName(property: string): string {
  let name = names.get(property);
  if (name === undefined) {
    name = property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    names.set(property, name);
  }
  return name;
}

/** A cache of column names by property, because some are needed for every row. */
const names = new Map<string, string>();
