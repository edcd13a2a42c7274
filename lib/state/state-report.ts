import { type JsonObject, type JsonValue } from '../common/json.js';

/** What the control plane can be asked for. */
export type StateOperation = 'describe' | 'reset' | 'compact';

/** What an operation of the control plane found and did (STA-21). */
export interface StateOperationResult {
  readonly operation: StateOperation;
  /** `null`: none was named. */
  readonly sessionId: string | null;
  /** One of each module that is enabled and was asked for, in the order of the modules. */
  readonly stores: readonly StateStoreReport[];
  /** Of which something was cleared. */
  readonly cleared: readonly string[];
  /** Of which something was compacted. */
  readonly compacted: readonly string[];
  /** Those that were asked for and are not enabled. */
  readonly missing: readonly string[];
  /** Those that failed; the others are done all the same. */
  readonly errors: readonly StateStoreError[];
  /** The request's. */
  readonly metadata: JsonObject;
}

/** One module's part of it. */
export interface StateStoreReport {
  readonly name: string;
  readonly enabled: boolean;
  /** Whether it has something of the session, or had before it was cleared; absent where no session was named. */
  readonly exists?: boolean;
  /** Messages, entries, tasks, flows; as they are afterwards. */
  readonly itemCount?: number;
  /** Messages of the log. */
  readonly messageCount?: number;
  /**
   * Messages in the current window: what the windows of turns are cut from. These are the leading system message, the summary, and
   * the messages after it that were not taken back by an orchestrator of this process (FIX-46).
   */
  readonly windowCount?: number;
  /** True only when something was there and is gone. */
  readonly cleared: boolean;
  /** True only when something was shortened. */
  readonly compacted: boolean;
  readonly data?: StateData;
  /** What else the module says: counts before and after, the position up to which it was compacted. */
  readonly metadata: JsonObject;
  readonly error?: StateStoreError;
}

/** A page of what a module holds. */
export interface StateData {
  readonly items: readonly JsonValue[];
  /** For `after` of the next request; absent on the last page. */
  readonly next?: string;
}

/** Why an operation failed in one module; the others went on. */
export interface StateStoreError {
  /** The name of the module. */
  readonly store: string;
  /** Stable, as that of a typed error. */
  readonly code: string;
  readonly message: string;
  /** When it may be tried again; absent where nothing says so. */
  readonly retryAfterMs?: number;
}
