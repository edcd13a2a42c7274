import { readBackwards } from '../conversation/read-backwards.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type TurnLedger } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';
import { type TranscriptCursor } from './transcript-cursor.js';

/** A turn with its messages of the log; or the messages of a purged turn; or a message that no turn wrote. */
export interface TranscriptEntry {
  readonly turn?: Turn;
  readonly messages: readonly ConversationMessage[];
}

/** Entries that were read, in order, and where they begin. */
export interface ReadEntries {
  readonly entries: readonly TranscriptEntry[];
  readonly turn: number;
  readonly message: number;
}

interface Stores {
  readonly turns: Pick<TurnLedger, 'list' | 'get'>;
  readonly conversations: Pick<ConversationLog, 'window' | 'page'>;
}

/**
 * Reads the turns and messages of a session backwards, merged into one order. The order does not depend on the pages.
 *
 * Turns write their messages in the order of the lane, each in one commit. A turn without messages is placed by the
 * time at which it settled. Turns are read before the messages, so that a turn that settles in between is complete.
 */
export class TranscriptReader {
  private readonly positions = new Map<string, Promise<number | undefined>>();
  private readonly messages: BackwardMessages;
  /** The latest first. */
  private turns: readonly Turn[] = [];
  /** True while the end of the log may contain messages of turns that were accepted after the turns were read. */
  private mayHaveNew: boolean;

  constructor(
    private readonly stores: Stores,
    private readonly sessionId: string,
    private readonly cursor: TranscriptCursor,
  ) {
    const { turn, message } = cursor;
    this.mayHaveNew = turn === Infinity;
    const before = message === Infinity ? {} : { before: message };
    this.messages = new BackwardMessages(readBackwards(stores.conversations, sessionId, before));
  }

  /** @param limit the maximum number of entries */
  async read(limit: number): Promise<ReadEntries> {
    // One more, to know whether another page follows.
    this.turns = await this.list(limit + 1);
    const entries: TranscriptEntry[] = [];
    let taken = 0;
    while (entries.length < limit) {
      const turn = this.turns.at(taken);
      const message = await this.messages.peek();
      if (message && (await this.isNew(message))) {
        await this.messages.take(message.turnId);
      } else if (message && (!turn || (await this.isAfter(message, turn)))) {
        entries.unshift({ messages: await this.messages.take(message.turnId) });
      } else if (turn) {
        entries.unshift({ turn, messages: message?.turnId === turn.id ? await this.messages.take(turn.id) : [] });
        taken += 1;
      } else break;
    }
    const next = this.turns.at(taken);
    const message = await this.messages.peek();
    return { entries, turn: next ? next.position + 1 : 0, message: message ? message.position + 1 : 0 };
  }

  /** Returns the position of a turn of the session in its lane; undefined if the turn was purged. */
  positionOf(turnId: string): Promise<number | undefined> {
    const known = this.turns.find(({ id }) => id === turnId)?.position;
    if (known !== undefined) return Promise.resolve(known);
    const found = this.positions.get(turnId) ?? this.stores.turns.get(turnId).then((turn) => turn?.position);
    this.positions.set(turnId, found);
    return found;
  }

  private async list(limit: number): Promise<readonly Turn[]> {
    const { turn } = this.cursor;
    if (turn === 0) return [];
    const after = turn === Infinity ? {} : { after: turn };
    return this.stores.turns.list({ sessionId: this.sessionId, order: 'desc', limit, ...after });
  }

  /** Returns whether the turn of a message was accepted after the turns were read. */
  private async isNew({ turnId }: ConversationMessage): Promise<boolean> {
    if (turnId === undefined || !this.mayHaveNew) return false;
    const position = await this.positionOf(turnId);
    this.mayHaveNew = position !== undefined && position > (this.turns.at(0)?.position ?? 0);
    return this.mayHaveNew;
  }

  private async isAfter({ turnId, createdAt }: ConversationMessage, turn: Turn): Promise<boolean> {
    if (turnId === turn.id) return false;
    const position = turnId === undefined ? undefined : await this.positionOf(turnId);
    if (position !== undefined) return position > turn.position;
    return turn.settledAt !== undefined && createdAt >= turn.settledAt;
  }
}

/** Messages of a log, the latest first. Reads pages on demand. */
class BackwardMessages {
  private page: ConversationMessage[] = [];

  constructor(private readonly pages: AsyncGenerator<readonly ConversationMessage[], void>) {}

  async peek(): Promise<ConversationMessage | undefined> {
    while (this.page.length === 0) {
      const { value, done } = await this.pages.next();
      if (done) return undefined;
      this.page = [...value];
    }
    return this.page.at(-1);
  }

  /** Takes the messages of a turn; undefined: one message. @returns the messages in their order */
  async take(turnId: string | undefined): Promise<readonly ConversationMessage[]> {
    const taken: ConversationMessage[] = [];
    do {
      await this.peek();
      taken.push(this.page.pop()!);
    } while (turnId !== undefined && (await this.peek())?.turnId === turnId);
    return taken.reverse();
  }
}
