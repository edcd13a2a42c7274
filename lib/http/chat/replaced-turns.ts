import { isDeepStrictEqual } from 'node:util';
import { type JsonObject } from '../../common/json.js';
import { readBackwards } from '../../conversation/read-backwards.js';
import { type ConversationLog } from '../../ledger/conversation.store.js';
import { isTerminal, type Turn, type TurnInput } from '../../ledger/turn.js';
import { type TurnService } from '../../turn/turn.service.js';
import { messageId } from '../../ledger/user-message.js';
import { type ChatRequest } from './chat.inputs.js';
import { latestTurns } from './latest-turns.js';

/** The number of turns among which a message is searched. */
const MAX_TURNS = 1000;
/** The number of stored messages among which one without a turn is searched. */
const MAX_MESSAGES = 2000;

/** Finds the turns that edits and requests for another answer replace (AIS-12). */
export class ReplacedTurns {
  constructor(
    private readonly turns: Pick<TurnService, 'get' | 'list'>,
    private readonly conversations: Pick<ConversationLog, 'window' | 'page'>,
    private readonly isShown: (turn: Turn) => boolean,
  ) {}

  /**
   * Returns the latest turn with a message of the user, by the id that the front end gave it. Reads the latest turns of the
   * session: an older message is unknown.
   */
  async withMessage(sessionId: string, messageId: string): Promise<Turn | undefined> {
    for await (const turn of latestTurns(this.turns, sessionId, MAX_TURNS)) {
      // The first message of a fork has the id of the command's message.
      if (this.isShown(turn) && !turn.request.command && messageIdOf(turn) === messageId) return turn;
    }
    return undefined;
  }

  /**
   * Returns whether the conversation has a message of the user. Its turn may be unknown: the sweep deletes turns, and keeps
   * messages. Reads the latest messages of the session.
   */
  async isStored(sessionId: string, messageId: string): Promise<boolean> {
    let read = 0;
    for await (const messages of readBackwards(this.conversations, sessionId)) {
      if (messages.some(({ id, role, metadata }) => role === 'user' && (idIn(metadata) ?? id) === messageId))
        return true;
      read += messages.length;
      if (read >= MAX_MESSAGES) return false;
    }
    return false;
  }

  /**
   * Returns the first of the turns that replace each other. A turn undoes others only when it succeeds, so a turn that
   * replaces an unfinished one must replace the same turns as that one.
   */
  async firstOf(turn: Turn): Promise<Turn> {
    const { replaces } = turn.request;
    const earlier = replaces === undefined ? null : await this.turns.get(replaces);
    return earlier ? this.firstOf(earlier) : turn;
  }

  /**
   * Returns whether the turn that a request would replace is already the turn of this request. An edit that changes nothing
   * is a repeated edit, unless the turn has settled and others follow: the user then wants to continue from this message.
   * A request for another answer is a repeated one while the turn is open; later it is a new one.
   */
  async isRepeat({ trigger, messageId }: ChatRequest, input: TurnInput, turn: Turn): Promise<boolean> {
    if (turn.request.replaces === undefined || !isDeepStrictEqual(turn.request.input, input)) return false;
    const isEdit = trigger === 'submit-message';
    return isTerminal(turn.status) ? isEdit && this.isLatest(turn) : isEdit || messageId === undefined;
  }

  private async isLatest({ id, sessionId }: Turn): Promise<boolean> {
    for await (const turn of latestTurns(this.turns, sessionId, MAX_TURNS)) {
      if (this.isShown(turn)) return turn.id === id;
    }
    return false;
  }
}

/** Returns the id under which front ends know the user's message of a turn. */
export function messageIdOf({ id, request }: Turn): unknown {
  return idIn(request.input.metadata) ?? messageId(id, 0);
}

/** Returns the id that a front end gave to a message; `undefined` if it has not sent the message. */
function idIn(metadata: JsonObject | undefined): unknown {
  return (metadata?.ui as { readonly id?: unknown } | undefined)?.id;
}
