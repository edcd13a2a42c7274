import { Logger } from '@nestjs/common';
import { UserRequests } from '../../chat/received-answers.js';
import { segmentsOf } from '../../chat/replay.js';
import { stoppedAnswer } from '../../chat/stopped-message.js';
import { type AnyUIMessage } from '../../chat/ui-message.js';
import { isUserSignal } from '../../chat/user-signals.js';
import { loggedId } from '../../common/log-details.js';
import { InvalidInputError, StoreRejectedError } from '../../common/sessions.error.js';
import { type ConversationLog } from '../../ledger/conversation.store.js';
import { type Session } from '../../ledger/session.js';
import { IdempotencyConflictError, TurnNotFoundError, TurnSettledError } from '../../ledger/turn.errors.js';
import { isTerminal, TURN_STATUSES, type Turn } from '../../ledger/turn.js';
import { toTurnInput as checkTurnInput } from '../../turn/turn.inputs.js';
import { type TurnService } from '../../turn/turn.service.js';
import { orchestratorOf } from '../controllers/client-turn.js';
import { httpMessages } from '../http.messages.js';
import { type ChatRequest, requestKeyOf, toTurnInput } from './chat.inputs.js';
import { type ChatRange, type ChatStream } from './chat-stream.js';
import { latestTurns } from './latest-turns.js';
import { messageIdOf, ReplacedTurns } from './replaced-turns.js';
import { answersOf } from './message-answers.js';

const OPEN = TURN_STATUSES.filter((status) => !isTerminal(status));
/** The maximum number of open or recent turns that are read. */
const MAX_OPEN = 200;

/** The attribute of a turn that names the wait which its message ends. */
const ENDED_WAIT = 'chat.endedWait';
/** The maximum number of parallel requests that it names, so that the attributes of a turn stay small. */
const MAX_SIGNALS = 50;

interface EndedWait {
  readonly turnId: string;
  readonly signals: readonly string[];
}

/** The turns of chats. Turns of orchestrators that clients may not use are ignored. */
export class ChatTurns {
  private readonly logger = new Logger('ChatController');
  private readonly replaced: ReplacedTurns;

  constructor(
    private readonly turns: TurnService,
    private readonly stream: ChatStream,
    private readonly orchestrators: readonly string[],
    private readonly maxInputBytes: number,
    conversations: Pick<ConversationLog, 'window' | 'page'>,
  ) {
    this.replaced = new ReplacedTurns(turns, conversations, (turn) => this.isShown(turn));
  }

  /** Validates a request before its chat is created. @throws InvalidInputError, TooLargeError */
  check(request: ChatRequest): void {
    const { orchestrator, message } = request;
    if (orchestrator !== undefined) orchestratorOf(this.orchestrators, orchestrator);
    if (message.role === 'user') checkTurnInput(toTurnInput(message), this.maxInputBytes, 'body.message');
  }

  /**
   * Accepts what a front end sends: a message, an edited message, a request for another answer, or the answers to
   * approval requests and the outputs of tools that the client runs. The same request has the same effect once (AIS-11).
   * A message that follows an unanswered request ends the turn that waits for it.
   * @returns the response to send
   * @throws as `TurnService.submit`; TurnNotFoundError for an unknown answer; TurnSettledError for an answer of the user
   * that comes after the end of its turn
   */
  async accept(session: Session, request: ChatRequest): Promise<ChatRange> {
    if (request.message.role === 'assistant') return this.answer(session.id, request.message);
    const turn = await this.submit(session, request);
    return { turnId: turn.id, segment: 0, skip: 0 };
  }

  /**
   * Returns the turn whose answer a front end shows when it resumes: the first one that is open. First ends the turns that
   * a later one ends, because a process may have died after it accepted that one (AIS-12).
   */
  async current(sessionId: string): Promise<Turn | undefined> {
    return (await this.openWithoutEnded(sessionId))[0];
  }

  /**
   * Returns the turn whose chunks a client has: the only one that has begun, and is open or settled less than `withinMs`
   * ago. Returns `undefined` also if several match, because the client may have chunks of any of them (AIS-33).
   */
  async only(sessionId: string, withinMs: number): Promise<Turn | undefined> {
    let found: Turn | undefined;
    for await (const turn of latestTurns(this.turns, sessionId, MAX_OPEN)) {
      if (turn.startedAt === undefined) continue;
      // A turn begins when all earlier ones have settled.
      if (!isOpenOrRecent(turn, withinMs)) break;
      if (!this.isShown(turn)) continue;
      if (found) return undefined;
      found = turn;
    }
    return found;
  }

  /** @throws TurnNotFoundError with the message, also for a turn of another session or orchestrator */
  async get(turnId: string, sessionId?: string, message?: string): Promise<Turn> {
    const turn = await this.turns.get(turnId);
    const isKnown = turn && this.isShown(turn) && (sessionId ?? turn.sessionId) === turn.sessionId;
    if (!isKnown) throw new TurnNotFoundError(turnId, message);
    return turn;
  }

  /** @param messageId the message of the user, or the answer. Default: returns the current turn */
  async openTurn(sessionId: string, messageId?: string): Promise<Turn | undefined> {
    const open = await this.openWithoutEnded(sessionId);
    // An edited message has the id of the earlier one.
    return messageId === undefined ? open.at(0) : open.findLast((each) => hasMessage(each, messageId));
  }

  /**
   * Cancels a turn, and keeps the message of the user and the answer so far (AIS-10). A turn that has not begun keeps
   * nothing (AIS-38).
   * @returns whether the turn was open
   */
  async stop(turn: Turn): Promise<boolean> {
    const { status } = await this.interrupt(turn);
    return !isTerminal(status) || status === 'cancelled';
  }

  private async interrupt(turn: Turn): Promise<Turn> {
    // If the turn is running, its worker adds the chunks that follow.
    const answer = stoppedAnswer(await this.stream.received(turn.id));
    if (!answer) return this.turns.cancel(turn.id, { keep: true });
    try {
      return await this.turns.interrupt(turn.id, answer);
    } catch (error) {
      if (!StoreRejectedError.isInstance(error)) throw error;
      // The store rejects the answer so far. The turn must still stop.
      return this.turns.cancel(turn.id, { keep: true });
    }
  }

  private async submit(session: Session, request: ChatRequest): Promise<Turn> {
    const { id: sessionId } = session;
    const input = toTurnInput(request.message);
    const replaced = await this.replacedBy(sessionId, request);
    const first = replaced && (await this.replaced.firstOf(replaced));
    const known = replaced && (await this.replaced.isRepeat(request, input, replaced)) ? replaced : undefined;
    const turn =
      known ??
      (await this.turns
        .submit(orchestratorOf(this.orchestrators, request.orchestrator ?? replaced?.orchestrator), input, {
          sessionId,
          session,
          idempotencyKey: requestKeyOf(request, replaced?.id),
          attributes: endedWaitOf(await this.open(sessionId)),
          ...(first === undefined ? {} : { replaces: first.id }),
        })
        .catch((error: unknown) => {
          // The client knows no key.
          if (!IdempotencyConflictError.isInstance(error)) throw error;
          throw new IdempotencyConflictError(sessionId, error.turnId, httpMessages.changedMessage(request.message.id));
        }));
    // A new turn cannot have failed yet.
    if (turn.status === 'failed') this.logger.warn(httpMessages.repeatsFailed(loggedId(turn.id), turn.error?.code));
    // Also for a repeated request: the process may have crashed after the submit and before this.
    if (endsOthers(turn)) await this.openWithoutEnded(sessionId);
    return turn;
  }

  /**
   * Returns the turn that a request edits or answers again (AIS-12). The message of such a request is new if the chat does
   * not have it: a page can edit or repeat a message that it could not send.
   * @throws TurnNotFoundError; InvalidInputError if the message would replace an answer
   */
  private async replacedBy(sessionId: string, request: ChatRequest): Promise<Turn | undefined> {
    const { trigger, messageId, message } = request;
    if (messageId === undefined && trigger === 'submit-message') return undefined;
    const replacedId = messageId ?? message.id;
    const isOther = replacedId !== message.id;
    const notFound = httpMessages.unknownMessage(replacedId);
    // The id of an answer is that of its turn.
    if (isOther && trigger === 'regenerate-message') {
      const turn = await this.get(replacedId, sessionId, notFound);
      // A fork has the messages of many turns.
      if (turn.request.command) throw new TurnNotFoundError(replacedId, notFound);
      return turn;
    }
    const turn = await this.replaced.withMessage(sessionId, replacedId);
    if (turn) return turn;
    if (isOther) {
      await this.get(replacedId, sessionId, notFound);
      throw new InvalidInputError('body.messageId', httpMessages.replacesAnswer(replacedId));
    }
    if (await this.replaced.isStored(sessionId, replacedId)) throw new TurnNotFoundError(replacedId, notFound);
    return undefined;
  }

  /** Returns the open turns, in order, after it has ended those that later ones end. */
  private async openWithoutEnded(sessionId: string): Promise<Turn[]> {
    const open = await this.open(sessionId);
    const ended = new Set<Turn>();
    for (const by of open.filter(endsOthers)) {
      const replaced = by.request.replaces === undefined ? undefined : await this.replaced.firstOf(by);
      for (const turn of open.filter(({ position }) => position < by.position)) {
        if (replaced && turn.position >= replaced.position) await this.turns.cancel(turn.id);
        else if (isEndedWait(turn, by)) await this.interrupt(turn);
        else continue;
        ended.add(turn);
      }
    }
    return open.filter((turn) => !ended.has(turn));
  }

  /**
   * Signals the answers that a message contains to its turn. An answer that the turn has already received has no effect,
   * even after the turn has ended.
   * @returns the response that follows the latest answered request
   * @throws TurnSettledError if the turn has ended without an answer: it was stopped, or its session has ended (AIS-32)
   */
  private async answer(sessionId: string, message: AnyUIMessage): Promise<ChatRange> {
    const turn = await this.get(message.id, sessionId, httpMessages.unknownAnswer(message.id));
    const segments = segmentsOf(await this.stream.stored(turn.id));
    const requests = new UserRequests(segments);
    const answers = answersOf(message);
    let last = -1;
    for (const answer of answers) {
      const segment = requests.responseOf(answer);
      last = Math.max(last, segment);
      // If a later segment exists, the turn has already continued with the answer.
      if (segment === -1 || segment !== segments.length - 1) continue;
      await this.turns.signal(turn.id, answer.signal(requests.countBefore(answer, segment)), answer.payload);
    }
    if (last === -1) {
      // The chunks of a turn that ended long ago are deleted.
      if (answers.length > 0 && isTerminal(turn.status)) throw new TurnSettledError(turn);
      throw new InvalidInputError(
        'body.messages',
        'must end with a message of the user, or with the answer to an approval request or a tool call.',
      );
    }
    return { turnId: turn.id, segment: last + 1, skip: 0 };
  }

  private async open(sessionId: string): Promise<Turn[]> {
    const turns = await this.turns.list({ sessionId, status: [...OPEN], limit: MAX_OPEN });
    return turns.filter((turn) => this.isShown(turn));
  }

  private isShown({ orchestrator }: Turn): boolean {
    return this.orchestrators.includes(orchestrator);
  }
}

/**
 * Returns the attributes of a turn whose message ends the wait for an answer of the user. They name the signals, so that a
 * repeated request, or a page that resumes, ends no wait that began after the message was sent.
 */
function endedWaitOf(open: readonly Turn[]): { readonly [ENDED_WAIT]?: EndedWait } {
  // Only the first open turn of a session can wait.
  const waitingFor = open.at(0)?.waitingFor;
  if (!waitingFor || !isUserSignal(waitingFor.signal)) return {};
  const signals = [waitingFor.signal, ...(waitingFor.others ?? [])].slice(0, MAX_SIGNALS);
  return { [ENDED_WAIT]: { turnId: open[0].id, signals } };
}

/** Returns whether a turn waits for an answer of the user that did not come, because the user sent the message of `by`. */
function isEndedWait({ id, waitingFor }: Turn, by: Turn): boolean {
  const ended = by.attributes[ENDED_WAIT] as unknown as EndedWait | undefined;
  return waitingFor !== undefined && ended?.turnId === id && ended.signals.includes(waitingFor.signal);
}

/** Returns whether a turn replaces earlier ones, or ends a wait for the user. */
function endsOthers({ request, attributes }: Turn): boolean {
  return request.replaces !== undefined || attributes[ENDED_WAIT] !== undefined;
}

/** Returns whether a turn has the message of the user, or is the turn of the answer. */
function hasMessage(turn: Turn, messageId: string): boolean {
  return turn.id === messageId || messageIdOf(turn) === messageId;
}

/** Returns whether a turn is open, or settled less than `withinMs` ago. */
export function isOpenOrRecent({ settledAt }: Turn, withinMs: number): boolean {
  return settledAt === undefined || Date.now() - Date.parse(settledAt) < withinMs;
}
