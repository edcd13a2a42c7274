import { type BegunLog, type ConversationHeads } from '../conversation/conversation-heads.js';
import { undoneBy, withoutUndone } from '../conversation/undone-messages.js';
import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal, type Turn, type TurnStatus } from '../ledger/turn.js';
import { userMessage } from '../ledger/user-message.js';
import { type UndoResult } from './time-travel.js';
import { LATEST, formatCursor, parseCursor, type TakenBackFrom, type TranscriptCursor } from './transcript-cursor.js';
import { type TranscriptEntry, TranscriptReader } from './transcript-reader.js';
import { type TranscriptMessage, type TranscriptTurn } from './transcript-turn.js';

const DEFAULT_LIMIT = 50;
/** The number of pages without messages that a call skips. The next call continues after them. */
const MAX_SKIPPED = 10;

/** A page of a conversation, in its order. It can be empty if many turns are hidden: earlier turns follow if it has `before`. */
export interface TranscriptPage {
  readonly turns: readonly TranscriptTurn[];
  /** The cursor of the page of earlier turns; absent on the first page. */
  readonly before?: string;
}

/** Selects a page of a conversation. */
export interface TranscriptQuery {
  readonly sessionId: string;
  /** The names of the orchestrators whose turns are shown. */
  readonly orchestrators: readonly string[];
  /** The `before` of the page of later turns. Default: the latest page. */
  readonly before?: string;
  /** Maximum number of turns that are read for a page; a message that no turn wrote counts as one. Default 50. */
  readonly limit?: number;
}

/** The stores that a transcript reads. */
export interface TranscriptStores {
  readonly turns: Pick<TurnLedger, 'list' | 'get'>;
  readonly conversations: Pick<ConversationLog, 'window' | 'page'>;
  readonly checkpoints: Pick<CheckpointStore, 'load'>;
}

/**
 * Reads conversations as their users see them (AIS-07): without messages that were undone or replaced, and with the
 * input of turns that are open, have failed or were cancelled.
 */
export class Transcript {
  constructor(
    private readonly stores: TranscriptStores,
    private readonly heads: Pick<ConversationHeads, 'begun'>,
  ) {}

  /** @throws InvalidInputError for an invalid cursor */
  async page({ before, limit = DEFAULT_LIMIT, ...query }: TranscriptQuery): Promise<TranscriptPage> {
    let cursor = before === undefined ? LATEST : parseCursor(before);
    for (let skipped = 0; ; skipped += 1) {
      const { turns, next } = await this.read(query, cursor, limit);
      if (turns.length > 0 || !next || skipped === MAX_SKIPPED)
        return { turns, ...(next ? { before: formatCursor(next) } : {}) };
      cursor = next;
    }
  }

  private async read(
    { sessionId, orchestrators }: Pick<TranscriptQuery, 'sessionId' | 'orchestrators'>,
    cursor: TranscriptCursor,
    limit: number,
  ): Promise<{ readonly turns: readonly TranscriptTurn[]; readonly next?: TranscriptCursor }> {
    const reader = new TranscriptReader(this.stores, sessionId, cursor);
    const { entries, turn, message } = await reader.read(limit);
    // Read after the messages: an undo may have been stored in between.
    const [log, ...checkpoints] = await Promise.all([
      this.heads.begun(sessionId),
      ...orchestrators.map((name) => this.stores.checkpoints.load(name, sessionId)),
    ]);
    // Hidden turns are left out first, so that the cursor does not contain the names of their orchestrators.
    const allowed = entries.filter((entry) => !entry.turn || orchestrators.includes(entry.turn.orchestrator));
    const { kept, takenBack } = await withoutTakenBack(allowed, cursor.takenBack, reader);
    const isShown = ({ orchestrator, role, replaces }: ConversationMessage): boolean =>
      (orchestrator === undefined || orchestrators.includes(orchestrator)) && role !== 'system' && !replaces;
    const undone = undoneBy(checkpoints, log.id);
    const turns = kept.flatMap((entry): TranscriptTurn[] => {
      const messages = isInput(entry, log)
        ? [inputOf(entry.turn)]
        : withoutUndone(entry.messages, undone).filter(isShown);
      return messages.length > 0 ? [{ ...nameOf(entry), messages }] : [];
    });
    return { turns, ...(turn > 0 || message > 0 ? { next: { turn, message, takenBack } } : {}) };
  }
}

/** Leaves out turns that later ones replaced or undid, and replacements that failed or were cancelled. */
async function withoutTakenBack(
  entries: readonly TranscriptEntry[],
  takenBackLater: TakenBackFrom,
  reader: TranscriptReader,
): Promise<{ readonly kept: readonly TranscriptEntry[]; readonly takenBack: TakenBackFrom }> {
  // Without a prototype, because an orchestrator may be named `constructor`.
  const takenBack = Object.assign(Object.create(null) as Record<string, number>, takenBackLater);
  const kept: TranscriptEntry[] = [];
  for (const entry of entries.toReversed()) {
    const { turn } = entry;
    const hadNoEffect = turn?.request.replaces !== undefined && !hasEffect(entry);
    if (!turn || (!hadNoEffect && turn.position < (takenBack[turn.orchestrator] ?? Infinity))) kept.unshift(entry);
    const first = turn && !hadNoEffect ? firstTakenBackBy(turn) : undefined;
    const position = first === undefined ? undefined : await reader.positionOf(first);
    if (turn && position !== undefined) {
      takenBack[turn.orchestrator] = Math.min(position, takenBack[turn.orchestrator] ?? Infinity);
    }
  }
  return { kept, takenBack };
}

/** Returns the id of the first turn that a turn replaces or undoes. */
function firstTakenBackBy({ request, status, reply }: Turn): string | undefined {
  if (request.command?.type !== 'undo' || !isSuccess(status)) return request.replaces;
  const { undone } = reply?.data as unknown as Pick<UndoResult, 'undone'>;
  return undone;
}

/** Returns whether a replacement has settled with messages or a reply, or may still do so. */
function hasEffect({ turn, messages }: TranscriptEntry): boolean {
  return messages.length > 0 || (turn !== undefined && (!isTerminal(turn.status) || isSuccess(turn.status)));
}

/**
 * Returns whether the user's message is shown though it is not in the log: the turn is open, or has not succeeded, and
 * the conversation was not reset since it began.
 */
function isInput(entry: TranscriptEntry, log: BegunLog): entry is TranscriptEntry & { readonly turn: Turn } {
  const { turn, messages } = entry;
  if (!turn || messages.length > 0 || isSuccess(turn.status)) return false;
  const { request, startedAt, settledAt } = turn;
  const began = startedAt ?? settledAt;
  const isForgotten = log.begunAt !== undefined && began !== undefined && began <= log.begunAt;
  return !request.command && !request.unlogged && !isForgotten;
}

function isSuccess(status: TurnStatus): boolean {
  return status === 'awaiting-input' || status === 'completed';
}

function inputOf(turn: Turn): TranscriptMessage {
  const { orchestrator: _, ...message } = userMessage(turn);
  return { ...message, orchestrator: turn.orchestrator, turnId: turn.id };
}

function nameOf({ turn, messages }: TranscriptEntry): Pick<TranscriptTurn, 'id' | 'turn'> {
  if (turn) return { id: turn.id, turn };
  const { turnId } = messages[0];
  return turnId === undefined ? {} : { id: turnId };
}
