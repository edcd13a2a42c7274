import { type ColumnType, type Columns, TABLES as CORE_TABLES } from '../core/rows.js';

/** The tables of a SQL store, for entities and for statements. */
export const TABLES = {
  ...CORE_TABLES,
  /** Which sessions hold a surface; the order of attachment is in the session's own row. */
  session_surface: { surfaceId: 'text key', sessionId: 'text key' },
  /** Which migration the tables are at. */
  schema: {
    version: 'integer key',
    /** The first migration whose package can still use them: two versions run side by side during a deploy. */
    usableFrom: 'integer',
  },
} as const satisfies Readonly<Record<string, Columns>>;

export type TableName = keyof typeof TABLES;

/** The columns of a table, in order. */
export function columnsOf(table: TableName): [property: string, type: ColumnType][] {
  return Object.entries<ColumnType>(TABLES[table]);
}

/** Columns are named in snake case. */
export function columnName(property: string): string {
  let name = names.get(property);
  if (name === undefined) {
    name = property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    names.set(property, name);
  }
  return name;
}

/** By property: some are asked for with every row. */
const names = new Map<string, string>();
