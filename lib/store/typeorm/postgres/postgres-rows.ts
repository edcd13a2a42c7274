import { columnName } from '../table-definitions.js';

/** A row as `row_to_json` gives it: columns in snake case, bigint as a number. */
export type SqlRow = Readonly<Record<string, string | number | null>>;

/** By column: one name for all rows, instead of a text made anew for each. */
const properties = new Map<string, string>();

/** The row as embedded/row-mapping.ts takes it. */
export function toRow<Row>(sql: SqlRow): Row {
  return Object.fromEntries(Object.entries(sql).map(([column, value]) => [propertyName(column), value])) as Row;
}

/** The columns of a row for `json_populate_record`; what is `undefined` becomes NULL. */
export function toSqlRow(row: Readonly<Record<string, string | number | null | undefined>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([property, value]) => [columnName(property), value]));
}

function propertyName(column: string): string {
  let property = properties.get(column);
  if (property === undefined) {
    property = column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    properties.set(column, property);
  }
  return property;
}
