import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type ConformanceContext } from '../conformance/target.js';
import type fc from 'fast-check';

export type FastCheck = typeof fc;

/** How long to search. */
export interface RunBudget {
  readonly numRuns: number;
  /** What is drawn from now on is not run. */
  readonly isSpent: () => boolean;
}

/** Nothing of this length passes while a test runs. */
export const NEVER_MS = 600_000;

/** How time goes, and which lengths of it make sense in actions, in milliseconds. */
export interface Durations {
  /** Whether the clock stands still until it is moved, so that every time can be foretold. */
  readonly exact: boolean;
  /** Of leases, delays and time-outs. */
  readonly given: readonly number[];
  /** Between two actions; empty when the store's clock cannot be moved. */
  readonly passing: readonly number[];
}

/** On a clock that runs by itself something is due at once or never. */
export const REAL_TIME: Durations = { exact: false, given: [0, NEVER_MS], passing: [] };
export const MOVED_TIME: Durations = { exact: true, given: [0, 10, 1000, NEVER_MS], passing: [1, 10, 1000] };

/**
 * One part of a store, told twice: what it does with one subject (a session, a user, the name of a lease), and what a
 * plain model says that it must do.
 *
 * An action is what fast-check draws: "settle as whoever claimed last". An operation is what is sent: plain data that
 * names its turn and its hold, and means the same to the store and to the model.
 */
export interface Specimen<Action, Operation, Model extends SequentialModel<Operation> = SequentialModel<Operation>> {
  actions(fc: FastCheck, durations: Durations): fc.Arbitrary<Action>;
  open(context: ConformanceContext): Promise<Driver<Action, Operation>>;
  model(durations: Durations): Model;
  /** Operations that change nothing and together show all of the subject. */
  readonly reads: readonly Operation[];
  /** Its operations reach the whole store: a second subject beside this one would not be left alone. */
  readonly alone?: boolean;
  /** What must hold of all subjects once everything was done; the clock can be moved then. */
  afterwards?(context: ConformanceContext, subjects: readonly (readonly [string, Model])[]): Promise<void>;
}

/** A subject in a store, and what its clients know of it. */
export interface Driver<Action, Operation> {
  /** The subject's; no other test has it. */
  readonly id: string;
  /** The operation that the action stands for now; `null` when there is none. */
  plan(action: Action): Operation | null;
  /** What the client sees, as JSON, the codes of typed errors included. */
  send(adapter: SessionsAdapter, operation: Operation): Promise<unknown>;
}

/** What must happen when one operation follows the other. All of its state is JSON in public fields. */
export interface SequentialModel<Operation> {
  /**
   * What the client must see. Where a store chooses (a fence), the model checks what was `seen` and goes on with that.
   */
  apply(operation: Operation, seen: unknown): unknown;
  /** Lets time pass. */
  elapse(ms: number): void;
}

/** Actions of one type, with what else is drawn for them. */
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
