import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageDraft, type MessagePart } from './message.js';
import { type SpentTokens } from './turn-usage.js';

/**
 * Where a turn stands (TRN-01). `waiting`: parked for a signal, the lane stays its own; `awaiting-input`: settled, the
 * conversation goes on; `completed`: settled, the conversation is over.
 */
export type TurnStatus = OpenTurnStatus | TerminalTurnStatus;
/** @inline */
export type OpenTurnStatus = 'queued' | 'running' | 'waiting';
/** @inline */
export type SettledTurnStatus = 'awaiting-input' | 'completed' | 'failed' | 'cancelled';
/** @inline */
export type TerminalTurnStatus = SettledTurnStatus | 'superseded';

export const TURN_STATUSES: readonly TurnStatus[] = [
  'queued',
  'running',
  'waiting',
  'awaiting-input',
  'completed',
  'failed',
  'cancelled',
  'superseded',
];

/** From this many lost attempts on, a turn is suspected of ending its process: a process runs one such turn at a time. */
export const SUSPECT_FROM_LOST = 2;

/** The number of the attempt that runs, or of the next one; the first is 1. */
export function attemptNumber({ failures, lost }: Pick<Turn, 'failures' | 'lost'>): number {
  return failures + lost + 1;
}

/** Whether the turn is over: no attempt follows. */
export function isTerminal(status: TurnStatus): status is TerminalTurnStatus {
  return status !== 'queued' && status !== 'running' && status !== 'waiting';
}

/**
 * What becomes of the turn that holds the lane and of those queued behind it when another message arrives (TRN-06). A turn
 * holds its lane from its first claim until it ends, also while it waits for a signal, or is queued again for a retry, after
 * a release or a signal; a turn that was never claimed is one of the queued ones:
 *
 * | | the holder | the queued ones |
 * | --- | --- | --- |
 * | `enqueue` | keep | keep |
 * | `reject` | keep; the new one is refused with SessionBusyError | keep |
 * | `interrupt` | cancel, its complete messages stay | keep |
 * | `rollback` | cancel, nothing of it stays | keep |
 * | `latest` | keep | superseded |
 * | `replace` | cancel, its complete messages stay | superseded |
 *
 * A holder that runs is asked to stop, and its worker settles it; one that does not run ends in the commit that accepts the
 * new turn, where only the user's message can stay.
 */
export type WhenBusy = 'enqueue' | 'reject' | 'interrupt' | 'rollback' | 'latest' | 'replace';

export const WHEN_BUSY: readonly WhenBusy[] = ['enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'];

/** How a running turn was asked to stop: `interrupt` keeps its complete messages, the others keep nothing. */
export type CancelMode = 'cancel' | 'interrupt' | 'rollback';

/** What the user said. */
export interface TurnInput {
  /** What was said, without what only `content` has. */
  readonly text: string;
  /** The message's content when it is more than text; default: `text`. */
  readonly content?: readonly MessagePart[];
  /** Stored with the user's message. Default: nothing. */
  readonly metadata?: JsonObject;
}

/**
 * A turn that changes the session instead of answering: `undo` takes the orchestrator's last turn back, `fork` begins the
 * session as a copy of another one.
 */
export type TurnCommand =
  | { readonly type: 'undo' }
  | { readonly type: 'fork'; readonly from: { readonly sessionId: string; readonly turnIndex: number } };

/** All that an attempt of the turn needs, in whichever process it runs. */
export interface TurnRequest {
  /** What the user said. */
  readonly input: TurnInput;
  /** Instead of an input, whose text is empty then: nothing is said, and no message is kept. */
  readonly command?: TurnCommand;
  /** The module `conversation` is not enabled where the turn was accepted: the log gets none of its messages (FIX-46). */
  readonly unlogged?: boolean;
  /** The caller's own history instead of the conversation log. */
  readonly history?: readonly MessageDraft[];
  /** Merged into the state before dispatch. */
  readonly statePatch?: JsonObject;
  /** The task of the session that the turn is of. */
  readonly taskId?: string;
  /** Adopt the orchestrator's present shape, whatever wrote the last checkpoint. */
  readonly force?: boolean;
  /** Sessions whose running turns wait for this one, see TurnReentryError. */
  readonly callers?: readonly string[];
  /** The span that submitted it, as W3C Trace Context writes it: its attempts belong to the same trace (NST-21). */
  readonly traceparent?: string;
}

/** What the turn answered. */
export interface TurnReply {
  readonly text: string | null;
  readonly data?: JsonValue;
}

/** Why a turn failed, for its record and for operators; not for end users. */
export interface TurnErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** Further fields of a typed error. */
  readonly details?: JsonObject;
}

/** One user input to one session, and what became of it. Times are ISO-8601 by the store's clock. */
export interface Turn {
  readonly id: string;
  readonly sessionId: string;
  /** Place in the lane, from 1: the order of acceptance. */
  readonly position: number;
  readonly orchestrator: string;
  /** The orchestrator's version where the turn was accepted. */
  readonly version: string;
  readonly request: TurnRequest;
  readonly attributes: JsonObject;
  readonly idempotencyKey?: string;
  readonly status: TurnStatus;
  /** Attempts so far whose handler failed. */
  readonly failures: number;
  /** Attempts so far that were lost with their worker: their lease ended. */
  readonly lost: number;
  /** Index of the checkpoint that the turn wrote; absent unless it succeeded. */
  readonly turnIndex?: number;
  readonly reply?: TurnReply;
  /** Why it failed. Of a turn that is tried again: why the attempt before failed, until one succeeds. */
  readonly error?: TurnErrorRecord;
  readonly report?: JsonObject;
  /** The tokens of all attempts, as far as they are recorded; absent when no model was counted. */
  readonly usage?: SpentTokens;
  /** Set while a running turn is asked to stop. */
  readonly cancelMode?: CancelMode;
  /** On superseded turns: the turn that took its place. */
  readonly supersededBy?: string;
  /** On waiting turns: the signal, and when the wait lapses. */
  readonly waitingFor?: { readonly signal: string; readonly until?: string };
  readonly acceptedAt: string;
  /** Start of the first attempt. */
  readonly startedAt?: string;
  readonly settledAt?: string;
  /** Not before this time: a retry's backoff. */
  readonly dueAt?: string;
}
