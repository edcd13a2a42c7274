import { isDeepStrictEqual } from 'node:util';
import { isTerminal, type Turn, type TurnInput } from '../../ledger/turn.js';
import { type TurnService } from '../../turn/turn.service.js';
import { messageId } from '../../ledger/user-message.js';
import { type ChatRequest } from './chat.inputs.js';
import { latestTurns } from './latest-turns.js';

/** The number of turns among which a message is searched. */
const MAX_TURNS = 1000;

/** Finds the turns that edits and requests for another answer replace (AIS-12). */
export class ReplacedTurns {
  constructor(
    private readonly turns: Pick<TurnService, 'get' | 'list'>,
    private readonly isShown: (turn: Turn) => boolean,
  ) {}

  /**
   * Returns the latest turn with a message of the user, by the id that the front end gave it. Reads the latest turns of the
   * session: an older message is unknown.
   */
  async withMessage(sessionId: string, messageId: string): Promise<Turn | undefined> {
    for await (const turn of latestTurns(this.turns, sessionId, MAX_TURNS)) {
      if (this.isShown(turn) && messageIdOf(turn) === messageId) return turn;
    }
    return undefined;
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
}

/**
 * Returns whether the turn that a request would replace is already the turn of this request. An edit that changes nothing
 * is a repeated edit. A request for another answer is a repeated one while the turn is open; later it is a new one.
 */
export function isRepeat({ trigger, messageId }: ChatRequest, input: TurnInput, turn: Turn): boolean {
  if (turn.request.replaces === undefined || !isDeepStrictEqual(turn.request.input, input)) return false;
  return trigger === 'submit-message' || (messageId === undefined && !isTerminal(turn.status));
}

/** Returns the id under which front ends know the user's message of a turn. */
export function messageIdOf({ id, request }: Turn): unknown {
  const ui = request.input.metadata?.ui as { readonly id?: unknown } | undefined;
  return ui?.id ?? messageId(id, 0);
}
