import { type JsonObject, type JsonValue } from '../common/json.js';

/** The operations of the control plane. */
export type StateOperation = 'describe' | 'reset' | 'compact';

/** The result of an operation of the control plane (STA-21). */
export interface StateOperationResult {
  readonly operation: StateOperation;
  /** `null` if the request has no session id. */
  readonly sessionId: string | null;
  /** Reports of the requested modules that are enabled, in the order of the modules. */
  readonly stores: readonly StateStoreReport[];
  /** Modules with cleared data. */
  readonly cleared: readonly string[];
  /** Modules with compacted data. */
  readonly compacted: readonly string[];
  /** Requested modules that are not enabled. */
  readonly missing: readonly string[];
  /** Errors of failed modules. The other modules completed. */
  readonly errors: readonly StateStoreError[];
  /** The metadata of the request. */
  readonly metadata: JsonObject;
}

/** The report of one module. */
export interface StateStoreReport {
  readonly name: string;
  readonly enabled: boolean;
  /** True if the module has data of the session, or had before it was cleared. Absent without a session id. */
  readonly exists?: boolean;
  /** Number of messages, entries, tasks or flows after the operation. */
  readonly itemCount?: number;
  /** Number of messages in the log. */
  readonly messageCount?: number;
  /**
   * Number of messages available to the windows of turns: the leading system message, the summary, and the later messages that were
   * not undone by an orchestrator of this process (FIX-46).
   */
  readonly windowCount?: number;
  /** True only if existing data was removed. */
  readonly cleared: boolean;
  /** True only if data was compacted. */
  readonly compacted: boolean;
  readonly data?: StateData;
  /** Additional data of the module: counts before and after, the position up to which it was compacted. */
  readonly metadata: JsonObject;
  readonly error?: StateStoreError;
}

/** A page of the data of a module. */
export interface StateData {
  readonly items: readonly JsonValue[];
  /** The value for `after` of the next request. Absent on the last page. */
  readonly next?: string;
}

/** The error of one module. The other modules continued. */
export interface StateStoreError {
  /** The name of the module. */
  readonly store: string;
  /** The stable code, like the code of a typed error. */
  readonly code: string;
  readonly message: string;
  /** Delay before a retry. Absent if unknown. */
  readonly retryAfterMs?: number;
}
