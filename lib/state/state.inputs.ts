import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import { MustBeKeys } from '../common/unset-keys.js';
import { isTaskState, TASK_STATE_RULE, type TaskState } from './task.js';

/** The maximum time to live in milliseconds: a hundred years. */
export const MAX_TTL_MS = 3_153_600_000_000;

/** Selects a page of a list. */
export class StatePageQuery {
  /** The `next` value of the previous page. Default: starts with the first item. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  after?: string;

  /** Maximum number of items, 1 to 1000. Default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** The options of a tool entry (STA-04). */
export class ToolEntryOptions {
  /**
   * Milliseconds after which the entry expires, counted from the write, or in a turn from its settlement. Default:
   * never.
   */
  @Optional()
  @MustBeInteger(1, MAX_TTL_MS)
  ttlMs?: number;

  /** Whether to exclude the value from descriptions, exports and logs. Default false. */
  @Optional()
  @MustBeBoolean()
  secret?: boolean;
}

/** The options of writing a tool entry (STA-04). */
export class ToolSetOptions extends ToolEntryOptions {
  /** Writes only if the stored version is this one; 0: only if the entry does not exist. Default: any version. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  ifVersion?: number;
}

/** The options of patching a tool entry (STA-04, FIX-47). */
export class ToolPatchOptions extends ToolEntryOptions {
  /** Keys to remove, at most 1000; the patch must not set them. Missing keys are ignored. Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: readonly string[];
}

/** Selects tool entries; `limit` is 100 by default. */
export class ToolQuery extends StatePageQuery {
  /** The tool of the entries. Default: all tools. */
  @Optional()
  @MustBeName()
  tool?: string;
}

/** The initial values of a task (STA-05). */
export class NewTask {
  /** The task's id. Default: a generated id. */
  @Optional()
  @Must(isId, ID_RULE)
  id?: string;

  /** JSON that the handlers of the task's turns receive. Default `null`. */
  @Allow()
  flowState?: unknown;
}

/** Additional changes of a task transition (STA-05). */
export class TaskTransitionOptions {
  /** Replaces the flow state of the task in the same change. JSON. Default: unchanged. */
  @Allow()
  flowState?: unknown;
}

/** Selects tasks (STA-05). */
export class TaskQuery extends StatePageQuery {
  /** The state of the tasks. Default: every state. */
  @Optional()
  @Must(isTaskState, TASK_STATE_RULE)
  state?: TaskState;
}

/** The condition of saving a flow checkpoint (STA-06). */
export class FlowSaveOptions {
  /** Saves only if the stored version is this one; 0: only if the flow does not exist. Default: any version. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  ifVersion?: number;
}

/** Selects versions of a flow (STA-06). */
export class FlowVersionQuery {
  /** Returns versions after this one. Default: starts with the oldest kept version. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** Maximum number of versions. Default 100. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** Selects a range of the message log (STA-03). */
export class MessageQuery {
  /** Returns messages after this position. Default 0. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** Maximum number of messages. Default 100. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** Selects the end of the message log (STA-03). */
export class MessageWindow {
  /** The number of last messages, preceded by the first message of the log if it is a system message. */
  @MustBeInteger(1, 1000)
  window!: number;
}
