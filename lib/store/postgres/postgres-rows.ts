import { type NewCheckpoint } from '../../ledger/checkpoint.js';
import { stepIdOf, type StepKey, stepText } from '../../ledger/turn-step.js';
import { extrasOf } from '../core/row-mapping.js';
import { columnName } from '../sql/columns.js';

/** A row as `row_to_json` returns it: columns in snake case, bigint as a number. */
export type SqlRow = Readonly<Record<string, string | number | null>>;

/** A cache of property names by column, to avoid a new string per row. */
const properties = new Map<string, string>();

/** Returns the row in the form of core/row-mapping.ts. */
export function toRow<Row>(sql: SqlRow): Row {
  return Object.fromEntries(Object.entries(sql).map(([column, value]) => [propertyName(column), value])) as Row;
}

/** Returns a row, or some of its columns, as a function argument. */
export function toColumns(row: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([property, value]) => [columnName(property), value]));
}

/** Returns a step's key as an argument of `store_step`. */
export function toStepArgs(key: StepKey): Record<string, unknown> {
  const text = stepText(key);
  return { id: stepIdOf(text), step_key: text };
}

/** Returns a checkpoint as an argument of `append_checkpoint`. */
export function toCheckpointArgs(checkpoint: NewCheckpoint): Record<string, unknown> {
  return {
    orchestrator: checkpoint.orchestrator,
    session_id: checkpoint.sessionId,
    turn_index: checkpoint.turnIndex,
    turn_id: checkpoint.turnId,
    parent: checkpoint.parent,
    state: JSON.stringify(checkpoint.state),
    last_route: JSON.stringify(checkpoint.lastRoute),
    signature: checkpoint.signature,
    version: checkpoint.version,
    summarized_through: checkpoint.summarizedThrough,
    extras: extrasOf(checkpoint),
  };
}

function propertyName(column: string): string {
  let property = properties.get(column);
  if (property === undefined) {
    property = column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    properties.set(column, property);
  }
  return property;
}
