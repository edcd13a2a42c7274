import { Allow, IsBoolean, IsString } from 'class-validator';
import { Must, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import { MustBeKeys } from '../common/unset-keys.js';
import { isTaskState, TASK_STATE_RULE, type TaskState } from './task.js';

/** The longest that anything is kept, in milliseconds: a hundred years. */
export const MAX_TTL_MS = 3_153_600_000_000;

/** Which part of a list. */
export class StatePageQuery {
  /** The `next` of the page before. Default: from the beginning. */
  @Optional()
  @IsString()
  after?: string;

  /** Items, 1 to 1000. Default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** Of an entry of a tool (STA-04). */
export class ToolEntryOptions {
  /** Milliseconds from the write, in a turn from its settlement, after which it is gone; left out: never. */
  @Optional()
  @MustBeInteger(1, MAX_TTL_MS)
  ttlMs?: number;

  /** Keeps the value out of descriptions, exports and logs. Default false. */
  @Optional()
  @IsBoolean()
  secret?: boolean;
}

/** How an entry of a tool is written (STA-04). */
export class ToolSetOptions extends ToolEntryOptions {
  /** Writes only over this version; 0: only when there is none. Left out: over any. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  ifVersion?: number;
}

/** How an entry of a tool is patched (STA-04, FIX-47). */
export class ToolPatchOptions extends ToolEntryOptions {
  /** Keys to remove, at most 1000; the patch must not set them. Keys that do not exist are ignored. Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: readonly string[];
}

/** Which entries of tools; `limit` is 100 by default. */
export class ToolQuery extends StatePageQuery {
  /** Left out: of all tools. */
  @Optional()
  @MustBeName()
  tool?: string;
}

/** What a task begins with (STA-05). */
export class NewTask {
  /** The task's id. Default: minted. */
  @Optional()
  @Must(isId, ID_RULE)
  id?: string;

  /** Given to the handlers of the task's turns. JSON. Default `null`. */
  @Allow()
  flowState?: unknown;
}

/** What changes with the state of a task (STA-05). */
export class TaskTransitionOptions {
  /** Takes the place of the task's, in the same change. JSON. Default: the task's stays. */
  @Allow()
  flowState?: unknown;
}

/** Which tasks (STA-05). */
export class TaskQuery extends StatePageQuery {
  /** Left out: in every state. */
  @Optional()
  @Must(isTaskState, TASK_STATE_RULE)
  state?: TaskState;
}

/** On what condition a checkpoint of a flow is saved (STA-06). */
export class FlowSaveOptions {
  /** Saves only over this version; 0: only when there is none. Left out: over any. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  ifVersion?: number;
}

/** Which versions of a flow (STA-06). */
export class FlowVersionQuery {
  /** Versions after this one. Default: from the oldest that is kept. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** How many versions at most. Default 100. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** A stretch of the message log (STA-03). */
export class MessageQuery {
  /** Messages after this position; default 0. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** At most this many; default 100. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** The end of the message log (STA-03). */
export class MessageWindow {
  /** The last so many messages, led by the log's first one when that is a system message. */
  @MustBeInteger(1, 1000)
  window!: number;
}
