import { type NewCheckpoint } from '../../ledger/checkpoint.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { stepIdOf, type StepKey, stepText } from '../../ledger/turn-step.js';
import { extrasOf } from '../core/row-mapping.js';
import { columnName } from '../sql/columns.js';

/** A row as `row_to_json` gives it: columns in snake case, bigint as a number. */
export type SqlRow = Readonly<Record<string, string | number | null>>;

/** By column: one name for all rows, instead of a text made anew for each. */
const properties = new Map<string, string>();

/** The row as core/row-mapping.ts takes it. */
export function toRow<Row>(sql: SqlRow): Row {
  return Object.fromEntries(Object.entries(sql).map(([column, value]) => [propertyName(column), value])) as Row;
}

/** A row, or some of its columns, as a function takes it. */
export function toColumns(row: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([property, value]) => [columnName(property), value]));
}

/** A message as `append_messages takes it. */
export function toMessageArgs({ id, role, orchestrator, ...body }: NewMessage): Record<string, unknown> {
  const { content, name, metadata, toolCalls, toolCallId } = body;
  return { id, role, orchestrator, body: JSON.stringify({ content, name, metadata, toolCalls, toolCallId }) };
}

/** A step's key as `store_step` takes it. */
export function toStepArgs(key: StepKey): Record<string, unknown> {
  const text = stepText(key);
  return { id: stepIdOf(text), step_key: text };
}

/** A checkpoint as `append_checkpoint` takes it. */
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
