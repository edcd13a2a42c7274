import { EventStream } from '../../common/event-stream.js';
import { type JsonObject } from '../../common/json.js';
import { type StateOperation } from '../../state/state-report.js';
import { type Principal } from '../../transport/principal.js';

/** A call of the control plane over HTTP (STA-25). What the state holds is not in it, and of the body only what is named here. */
export interface StateEvent {
  readonly type: StateOperation;
  /** `repeated`: the answer to an Idempotency-Key was given again, and nothing was done. `failed`: by a status of 500 or more. */
  readonly outcome: 'done' | 'repeated' | 'refused' | 'failed';
  readonly statusCode: number;
  /** Of the error, unless the call is done. */
  readonly code?: string;
  /** Absent where nobody is known. */
  readonly principal?: Omit<Principal, 'capabilities'>;
  /** Absent where none was named, and, as what follows, where the body was wrong. */
  readonly sessionId?: string;
  readonly all?: boolean;
  readonly stores?: readonly string[];
  readonly dryRun?: boolean;
  /** Of which something was cleared, or compacted. */
  readonly cleared: readonly string[];
  readonly compacted: readonly string[];
  readonly durationMs: number;
  /** The request's. */
  readonly metadata?: JsonObject;
}

/**
 * The audit of the control plane: tells of every call over HTTP that this process answered, also of those that were refused. Injectable.
 * No listener delays or fails a call; keep what must not be lost in a place of your own.
 */
export class StateEvents extends EventStream<StateEvent> {}
