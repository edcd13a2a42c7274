import { isDeepStrictEqual } from 'node:util';
import { toRecorded } from './message-mapping.js';
import { type RecordedConversation, turnsOf } from './record.js';
import { type StoredConversation } from './worker-calls.js';

/** A conversation after it was replayed. */
export interface ReplayedConversation {
  readonly record: RecordedConversation;
  /** Acknowledged turn ids, in the order of submission. */
  readonly turnIds: readonly string[];
  readonly stored: StoredConversation;
  /** The executions of each turn's steps. */
  readonly effects: ReadonlyMap<string, readonly number[]>;
}

/** Compares the stored conversation with the record. @returns a description of the first difference, or `null` */
export function firstDifference(replayed: ReplayedConversation): string | null {
  const [first] = differences(replayed);
  return first === undefined ? null : `${replayed.record.id}: ${first}`;
}

function* differences({ record, turnIds, stored, effects }: ReplayedConversation): Generator<string> {
  const turns = turnsOf(record);
  yield* compare(
    'turns',
    turns.map((_, index) => ({ id: turnIds[index], position: index + 1, turnIndex: index, status: 'awaiting-input' })),
    stored.turns.map(({ id, position, turnIndex, status }) => ({ id, position, turnIndex, status })),
  );
  yield* compare('messages', record.messages, stored.messages.map(toRecorded));
  const writers = turns.flatMap(({ leading, rest }, index) =>
    Array<string>(leading.length + 1 + rest.length).fill(turnIds[index]),
  );
  yield* compare(
    'messages',
    writers.map((turnId, index) => ({ position: index + 1, turnId })),
    stored.messages.map(({ position, turnId }) => ({ position, turnId })),
  );
  for (const [index, { rest }] of turns.entries()) {
    const runs = effects.get(turnIds[index]) ?? [];
    yield* compare(`turns[${index}].steps`, [...rest.keys()], withoutAllowedRepeats(runs));
  }
}

/**
 * A kill between a step's effect and its stored result repeats the effect, before any later step has run. A repeat
 * after a later step means that a stored step was repeated.
 */
function withoutAllowedRepeats(runs: readonly number[]): number[] {
  return runs.filter((step, index) => step !== runs[index - 1]);
}

function* compare(path: string, recorded: unknown, stored: unknown): Generator<string> {
  if (isDeepStrictEqual(recorded, stored)) return;
  if (!isContainer(recorded) || !isContainer(stored) || Array.isArray(recorded) !== Array.isArray(stored)) {
    const from = divergence(recorded, stored);
    yield `${path}: expected ${show(recorded, from)}, stored ${show(stored, from)}`;
    return;
  }
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(stored)])) {
    yield* compare(
      Array.isArray(recorded) ? `${path}[${key}]` : `${path}.${key}`,
      own(recorded, key),
      own(stored, key),
    );
  }
}

/** Keys are data: `constructor` must not match an inherited property. */
function own(container: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(container, key) ? container[key] : undefined;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Describes the difference of two strings; long ones are shown from shortly before it. */
function divergence(a: unknown, b: unknown): number {
  if (typeof a !== 'string' || typeof b !== 'string') return 0;
  let index = 0;
  while (index < a.length && a[index] === b[index]) index += 1;
  return Math.max(0, index - 20);
}

function show(value: unknown, from: number): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(from) : value);
  return `${from > 0 ? '…' : ''}${text.length > 200 ? `${text.slice(0, 200)}…` : text}`;
}
