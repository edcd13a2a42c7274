import { EventStream } from '../../common/event-stream.js';
import { type JsonObject } from '../../common/json.js';
import { type StateOperation } from '../../state/state-report.js';
import { type Principal } from '../../transport/principal.js';

/** A call of the control plane over HTTP (STA-25). Contains no state, and only the listed fields of the body. */
export interface StateEvent {
  readonly type: StateOperation;
  /** `repeated`: the stored response of an Idempotency-Key was returned. `failed`: the status is 500 or higher. */
  readonly outcome: 'done' | 'repeated' | 'refused' | 'failed';
  readonly statusCode: number;
  /** The code of the error; absent if the call succeeded. */
  readonly code?: string;
  /** Absent if the caller is unknown. */
  readonly principal?: Omit<Principal, 'capabilities'>;
  /** Absent if the request named none. This and the following fields are absent if the body was invalid. */
  readonly sessionId?: string;
  readonly all?: boolean;
  readonly stores?: readonly string[];
  readonly dryRun?: boolean;
  /** Modules of which data was cleared or compacted. */
  readonly cleared: readonly string[];
  readonly compacted: readonly string[];
  readonly durationMs: number;
  /** The metadata of the request. */
  readonly metadata?: JsonObject;
}

/**
 * The audit log of the control plane: emits every HTTP call that this process answered, including rejected ones.
 * Injectable.
 * Listeners cannot delay or fail a call. Store events in your own database if none may be lost.
 */
export class StateEvents extends EventStream<StateEvent> {}
