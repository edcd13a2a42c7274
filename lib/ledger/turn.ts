import { type Checkpoint } from './checkpoint.js';
import { type NewMessage } from './conversation.store.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageDraft, type MessagePart } from './message.js';
import { type SpentTokens } from './turn-usage.js';

/**
 * The status of a turn (TRN-01). `waiting`: waits for a signal and still holds its lane; `awaiting-input`: settled, the
 * conversation continues; `completed`: settled, the conversation has ended.
 */
export type TurnStatus = OpenTurnStatus | TerminalTurnStatus;
/** @inline */
export type OpenTurnStatus = 'queued' | 'running' | 'waiting';
/** @inline */
export type SettledTurnStatus = 'awaiting-input' | 'completed' | 'failed' | 'cancelled';
/** The status of a turn that has ended. @inline */
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

/** Number of lost attempts from which a turn is suspected of crashing its process. A process runs one such turn at a time. */
export const SUSPECT_FROM_LOST = 2;

/**
 * Returns whether a turn was lost too often to run again (FIX-62). `maxLost` limits the losses since the turn last stored a step,
 * wait or iteration, so that a long turn which progresses survives many of them. Ten times `maxLost` losses end it in any case.
 */
export function isLostTooOften(
  { lost, lostSinceStep }: { readonly lost: number; readonly lostSinceStep: number },
  maxLost: number,
): boolean {
  return lostSinceStep >= maxLost || lost >= 10 * maxLost;
}

/** Returns the number of the running or next attempt, starting at 1. */
export function attemptNumber({ failures, lost }: Pick<Turn, 'failures' | 'lost'>): number {
  return failures + lost + 1;
}

/** Returns whether the turn has settled, so that no attempt follows. */
export function isTerminal(status: TurnStatus): status is TerminalTurnStatus {
  return status !== 'queued' && status !== 'running' && status !== 'waiting';
}

/**
 * How a new message affects the turn that holds the lane and the turns queued behind it (TRN-06). A turn holds its lane from its
 * first claim until it ends, even while it waits for a signal, or is queued again for a retry, after a release or a signal. A turn
 * that was never claimed counts as queued:
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

/** The user's message. */
export interface TurnInput {
  /** The text of the message. */
  readonly text: string;
  /** The content of a message with more than text. Default: `text`. */
  readonly content?: readonly MessagePart[];
  /** Metadata stored with the user's message. Default: none. */
  readonly metadata?: JsonObject;
}

/**
 * A turn that changes the session instead of answering: `undo` reverts the orchestrator's last turn, `fork` starts the session as a
 * copy of another one; `savedAt` identifies its checkpoint if the id of that session is deleted and created again.
 */
export type TurnCommand =
  | { readonly type: 'undo' }
  | { readonly type: 'fork'; readonly from: Pick<Checkpoint, 'sessionId' | 'turnIndex' | 'savedAt'> };

/** All data that an attempt of the turn needs in any process. */
export interface TurnRequest {
  /** The user's message. */
  readonly input: TurnInput;
  /** Replaces the input, whose text is then empty; no message is stored. */
  readonly command?: TurnCommand;
  /** The module `conversation` was not enabled in the accepting process: the log receives no messages of the turn (FIX-46). */
  readonly unlogged?: boolean;
  /** A history from the caller that replaces the conversation log. */
  readonly history?: readonly MessageDraft[];
  /** Merged into the state before dispatch. */
  readonly statePatch?: JsonObject;
  /** The turn of the session that this one replaces, with all later ones of its orchestrator. */
  readonly replaces?: string;
  /** The task of the session that the turn belongs to. */
  readonly taskId?: string;
  /** Adopts the current shape of the orchestrator, even if the last checkpoint has another one. */
  readonly force?: boolean;
  /** Sessions whose running turns wait for this one, see TurnReentryError. */
  readonly callers?: readonly string[];
  /** The span that submitted the turn, as a W3C `traceparent`. The attempts belong to the same trace (NST-21). */
  readonly traceparent?: string;
}

/** The reply of a turn. */
export interface TurnReply {
  readonly text: string | null;
  readonly data?: JsonValue;
}

/** The cause of a failed turn, for its record and operators, not for end users. */
export interface TurnErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** Further fields of a typed error. */
  readonly details?: JsonObject;
}

/** A user input to a session with its outcome. Times are ISO-8601 by the store's clock. */
export interface Turn {
  readonly id: string;
  readonly sessionId: string;
  /** Position in the lane, in order of acceptance, starting at 1. */
  readonly position: number;
  readonly orchestrator: string;
  /** The orchestrator's version in the accepting process. */
  readonly version: string;
  readonly request: TurnRequest;
  readonly attributes: JsonObject;
  readonly idempotencyKey?: string;
  readonly status: TurnStatus;
  /** Number of attempts whose handler failed. */
  readonly failures: number;
  /** Number of attempts lost because their lease expired. */
  readonly lost: number;
  /** Index of the checkpoint that the turn wrote; absent unless it succeeded, or was stopped while it replaced others. */
  readonly turnIndex?: number;
  readonly reply?: TurnReply;
  /** The cause of the failure. While a turn is retried: the cause of the previous failed attempt, until one succeeds. */
  readonly error?: TurnErrorRecord;
  readonly report?: JsonObject;
  /** The recorded tokens of all attempts. Absent if no usage was recorded. */
  readonly usage?: SpentTokens;
  /** Set while a running turn is asked to stop. */
  readonly cancelMode?: CancelMode;
  /** The messages that stay besides the user's. Set while a running turn is asked to stop with messages to keep. */
  readonly keep?: readonly NewMessage[];
  /** The turn that replaced a superseded turn. */
  readonly supersededBy?: string;
  /** What a waiting turn waits for. */
  readonly waitingFor?: {
    /** The signal that continues the turn. */
    readonly signal: string;
    /** The signals that the handler also waits for, in parallel. Each can be sent now. Absent: none. */
    readonly others?: readonly string[];
    /** When the wait for `signal` expires, ISO-8601 by the store's clock. Absent: never. */
    readonly until?: string;
  };
  readonly acceptedAt: string;
  /** Start of the first attempt. */
  readonly startedAt?: string;
  readonly settledAt?: string;
  /** The earliest time of the next attempt, because of a retry's backoff. */
  readonly dueAt?: string;
}
