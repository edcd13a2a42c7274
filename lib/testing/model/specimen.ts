import { type SessionsAdapter } from '../../sessions.adapter.js';
import { type ConformanceContext } from '../conformance/target.js';
import type fc from 'fast-check';

export type FastCheck = typeof fc;

/** Nothing of this length passes while a test runs. */
export const NEVER_MS = 600_000;

/** Which lengths of time make sense in actions, in milliseconds. */
export interface Durations {
  /** Of leases, delays and time-outs. */
  readonly given: readonly number[];
  /** Between two actions; empty when the store's clock cannot be moved. */
  readonly passing: readonly number[];
}

/** On a clock that runs by itself something is due at once or never. */
export const REAL_TIME: Durations = { given: [0, NEVER_MS], passing: [] };
export const MOVED_TIME: Durations = { given: [0, 10, 1000, NEVER_MS], passing: [1, 10, 1000] };

/**
 * One part of a store, told twice: what it does with one session, and what a plain model says that it must do.
 *
 * An action is what fast-check draws: "settle as whoever claimed last". An operation is what is sent: plain data that
 * names its turn and its hold, and means the same to the store and to the model.
 */
export interface Specimen<Action, Operation, Model extends SequentialModel<Operation> = SequentialModel<Operation>> {
  actions(fc: FastCheck, durations: Durations): fc.Arbitrary<Action>;
  open(context: ConformanceContext): Promise<Driver<Action, Operation>>;
  model(): Model;
  /** Operations that change nothing and together show all of the session. */
  readonly reads: readonly Operation[];
  /** What must hold of all sessions once everything was done; the clock can be moved then. */
  afterwards?(context: ConformanceContext, sessions: readonly (readonly [string, Model])[]): Promise<void>;
}

/** A session of a store, and what its clients know of it. */
export interface Driver<Action, Operation> {
  readonly sessionId: string;
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
