import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type ConformanceContext } from '../conformance/target.js';
import type fc from 'fast-check';

export type FastCheck = typeof fc;

/** The limit of a search. */
export interface RunBudget {
  readonly numRuns: number;
  /** Returns true when further runs must be skipped. */
  readonly isSpent: () => boolean;
}

/** Milliseconds longer than any test runs. */
export const NEVER_MS = 600_000;

/** The behaviour of the clock, and useful durations for actions in milliseconds. */
export interface Durations {
  /** True if the clock only moves when the test moves it, so that every time is predictable. */
  readonly exact: boolean;
  /** Durations of leases, delays and time-outs. */
  readonly given: readonly number[];
  /** Durations between two actions; empty if the test cannot move the store's clock. */
  readonly passing: readonly number[];
}

/** On a running clock, work is due immediately or never. */
export const REAL_TIME: Durations = { exact: false, given: [0, NEVER_MS], passing: [] };
export const MOVED_TIME: Durations = { exact: true, given: [0, 10, 1000, NEVER_MS], passing: [1, 10, 1000] };

/**
 * One part of a store with its driver and model. The driver sends operations to one subject (a session, a user, the
 * name of a lease), and a plain model predicts their outcomes.
 *
 * Fast-check generates actions, such as "settle as the last claimer". The driver turns an action into an operation:
 * plain data with a concrete turn and hold, which the store and the model interpret in the same way.
 */
export interface Specimen<Action, Operation, Model extends SequentialModel<Operation> = SequentialModel<Operation>> {
  actions(fc: FastCheck, durations: Durations): fc.Arbitrary<Action>;
  open(context: ConformanceContext): Promise<Driver<Action, Operation>>;
  model(durations: Durations): Model;
  /** Operations without effect that together read the complete subject. */
  readonly reads: readonly Operation[];
  /** True if operations affect the whole store, so that a second subject is not possible. */
  readonly alone?: boolean;
  /** Checks all subjects after all operations. It may move the clock. */
  afterwards?(context: ConformanceContext, subjects: readonly (readonly [string, Model])[]): Promise<void>;
}

/** A subject in a store, and the state that its clients know. */
export interface Driver<Action, Operation> {
  /** The id of the subject, which no other test uses. */
  readonly id: string;
  /** Returns the operation for an action in the current state; `null` if none applies. */
  plan(action: Action): Operation | null;
  /** Sends an operation and returns the outcome as JSON, including the codes of typed errors. */
  send(adapter: SessionsAdapter, operation: Operation): Promise<unknown>;
}

/** Predicts the outcomes of consecutive operations. Its whole state is JSON in public fields. */
export interface SequentialModel<Operation> {
  /**
   * Returns the expected outcome. If the store may choose a value, such as a fence, the model checks the value in `seen`
   * and adopts it.
   * @param seen the outcome of the store
   */
  apply(operation: Operation, seen: unknown): unknown;
  /** Lets time pass. */
  elapse(ms: number): void;
}

/** Returns an arbitrary of actions of one type with the given fields. */
export function action<const Type extends string, Fields extends Record<string, fc.Arbitrary<unknown>>>(
  fc: FastCheck,
  type: Type,
  fields: Fields,
): fc.Arbitrary<{ readonly type: Type } & Drawn<Fields>> {
  return fc.record(fields).map((drawn) => ({ type, ...(drawn as Drawn<Fields>) }));
}

type Drawn<Fields> = {
  readonly [Key in keyof Fields]: Fields[Key] extends fc.Arbitrary<infer Value> ? Value : never;
};
