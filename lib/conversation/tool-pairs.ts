import { type MessageDraft } from '../ledger/message.js';
import { callsIn, resultsIn } from './calls-in.js';

/** Matches results and calls in any list of messages: parallel calls, results in any order, and reused ids. */
export interface Pairs {
  /** By the index of a message with calls, and by call id: the index of the message with the result. */
  readonly calls: ReadonlyMap<number, ReadonlyMap<string, number | undefined>>;
  /** The index of the message with the call, by the index of the message with a result; -1 without a call. */
  readonly callOf: ReadonlyMap<number, number>;
}

/**
 * Returns the last index at or before `index` where the list can be cut without separating calls from their results.
 */
export function wholeCut(messages: readonly MessageDraft[], index: number): number {
  let cut = Math.min(index, messages.length);
  const spans = [...pairsOf(messages).callOf].filter(([, call]) => call !== -1).reverse();
  for (const [result, call] of spans) {
    if (call < cut && result >= cut) cut = call;
  }
  return cut;
}

/**
 * Returns the first index at or after `index` where the list can be cut without separating calls from their results.
 */
export function wholeCutAfter(messages: readonly MessageDraft[], index: number): number {
  let cut = index;
  for (const [result, call] of pairsOf(messages).callOf) {
    if (call !== -1 && call < cut && result >= cut) cut = result + 1;
  }
  return cut;
}

/** Returns whether the list contains the calls of all results from `index` on. */
export function hasCallsFrom(messages: readonly MessageDraft[], index: number): boolean {
  return [...pairsOf(messages).callOf].every(([result, call]) => result < index || call !== -1);
}

/** Returns whether a list has calls or results at all. Most conversations have none. */
export function hasTools(messages: readonly MessageDraft[]): boolean {
  return messages.some(
    (message) => message.role === 'tool' || callsIn(message).length > 0 || resultsIn(message).length > 0,
  );
}

/** Matches each result with the latest call of its id, and each call with its first result. */
export function pairsOf(messages: readonly MessageDraft[]): Pairs {
  const calls = new Map<number, Map<string, number | undefined>>();
  const callOf = new Map<number, number>();
  /** The index of the latest call of each id. */
  const latestOf = new Map<string, number>();
  let latest = -1;
  for (const [index, message] of messages.entries()) {
    const own = callsIn(message);
    if (own.length > 0) {
      latest = index;
      calls.set(index, new Map(own.map(({ id }) => [id, undefined])));
      for (const { id } of own) latestOf.set(id, index);
    }
    if (message.role === 'tool') callOf.set(index, latest);
    for (const [at, given] of resultsIn(message).entries()) {
      const call = given === undefined ? latest : (latestOf.get(given) ?? -1);
      if (at === 0 || callOf.get(index) === -1) callOf.set(index, call);
      const results = calls.get(call);
      const id = given ?? [...(results ?? [])].find(([, result]) => result === undefined)?.[0];
      if (results && id !== undefined && results.get(id) === undefined) results.set(id, index);
    }
  }
  return { calls, callOf };
}
