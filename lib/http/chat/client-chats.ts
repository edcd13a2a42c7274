import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { toUIMessages } from '../../chat/stored-messages.js';
import { type AnyUIMessage } from '../../chat/ui-message.js';
import { TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type Session } from '../../ledger/session.js';
import { type Transcript } from '../../orchestrator/transcript.js';
import { type Principal } from '../../transport/principal.js';
import { assertRegistered, type TurnRunner } from '../../turn/turn-runner.js';
import { nothingToResume } from '../http.errors.js';
import { httpMessages } from '../http.messages.js';
import { type ChatMessagesQuery, type ChatRequest, type ListChatsQuery, type StopChatRequest } from './chat.inputs.js';
import { type NamedResponse } from './chat-named-responses.js';
import { type ChatSessions } from './chat-sessions.js';
import { type ChatRange } from './chat-stream.js';
import { type ChatTurns, isOpenOrRecent } from './chat-turns.js';

/** A chat of the user, with all metadata: do not store anything there that the user must not see. */
export type ChatView = Pick<Session, 'id' | 'state' | 'createdAt' | 'lastActivityAt' | 'metadata'>;

/** A page of chats. */
export interface ChatList {
  readonly chats: readonly ChatView[];
  /** The value of `cursor` for the next page; absent on the last page. */
  readonly nextCursor?: string;
}

/** A page of the messages of a chat, in their order. It can be empty: earlier messages follow while it has `before`. */
export interface ChatMessages {
  readonly messages: readonly AnyUIMessage[];
  /** The value of `before` for the page of earlier messages; absent on the first page. */
  readonly before?: string;
}

/** The result of a stop. */
export interface StoppedChat {
  /** False if the chat had no open turn, or none with the given message. */
  readonly stopped: boolean;
}

/** How long after the end of a turn a client may still continue its response. */
const RECONNECT_MS = 60_000;

/** The chats of users, as front ends use them: views of sessions, turns and events (AIS-10). */
export class ClientChats implements OnApplicationBootstrap {
  private readonly logger = new Logger(ClientChats.name);

  constructor(
    private readonly sessions: ChatSessions,
    private readonly turns: ChatTurns,
    private readonly transcript: Transcript,
    private readonly runner: TurnRunner,
    private readonly orchestrators: readonly string[],
  ) {}

  /** @throws SessionsConfigurationError for an unknown orchestrator */
  onApplicationBootstrap(): void {
    assertRegistered('controllers.chat.orchestrators', this.orchestrators, this.runner);
  }

  /** Accepts a request of a front end. @returns what to send */
  async accept(principal: Principal, chatId: string, request: ChatRequest): Promise<ChatRange> {
    this.turns.check(request);
    const session = await this.sessionFor(principal, chatId, request);
    const range = await this.turns.accept(session, request);
    await this.sessions.touch(session, this.logger);
    return range;
  }

  /**
   * Returns what a front end shows when it resumes: the answer of the current turn.
   * @param skip the number of chunks that it has received. If it is not 0, they must be of the only turn that was open
   * within the last {@link RECONNECT_MS}
   * @throws NothingToStreamError (`NOTHING_TO_RESUME`)
   */
  async resume(principal: Principal, chatId: string, skip?: number): Promise<ChatRange> {
    const session = await this.sessions.find(principal, chatId);
    const turn =
      session && (skip ? await this.turns.only(session.id, RECONNECT_MS) : await this.turns.current(session.id));
    if (!turn) throw nothingToResume();
    return { turnId: turn.id, segment: 0, isResumed: true, ...(skip === undefined ? {} : { skip }) };
  }

  /** Returns the response of a turn that began with a segment. @throws TurnNotFoundError */
  async responseOf(principal: Principal, turnId: string, segment: number): Promise<ChatRange> {
    const turn = await this.turns.get(turnId);
    if (!(await this.sessions.isOwn(principal, turn.sessionId))) throw new TurnNotFoundError(turnId);
    return { turnId, segment, isResumed: true };
  }

  /**
   * Returns the response that a client continues: its turn is open, or has settled within {@link RECONNECT_MS}. Returns
   * `undefined` if there is none.
   * @throws NothingToStreamError (`NOTHING_TO_RESUME`) if there are several: the client must load the messages
   */
  async continued(principal: Principal, responses: readonly NamedResponse[]): Promise<ChatRange | undefined> {
    const open = await Promise.all(responses.map(async (each) => ((await this.isRecent(each.turnId)) ? each : [])));
    const [response, other] = open.flat();
    if (other) throw nothingToResume();
    return response && this.responseOf(principal, response.turnId, response.segment);
  }

  /** Stops the current answer, or cancels the given message. */
  async stop(principal: Principal, chatId: string, { messageId }: StopChatRequest): Promise<StoppedChat> {
    const session = await this.sessions.find(principal, chatId);
    if (!session) return { stopped: false };
    const turn = await this.turns.openTurn(session.id, messageId);
    // Read after the turn: another session may have got the id, and this may be its turn (FIX-90).
    if (!turn || !(await this.sessions.isCurrent(session))) return { stopped: false };
    return { stopped: await this.turns.stop(turn) };
  }

  /** Returns a page of messages; an unknown chat has none. */
  async messages(principal: Principal, chatId: string, query: ChatMessagesQuery): Promise<ChatMessages> {
    const session = await this.sessions.find(principal, chatId);
    if (!session) return { messages: [] };
    const { orchestrators } = this;
    const { turns, before } = await this.transcript.page({ ...query, sessionId: session.id, orchestrators });
    const messages = toUIMessages(turns.flatMap((turn) => turn.messages));
    return { messages, ...(before === undefined ? {} : { before }) };
  }

  async list(principal: Principal, query: ListChatsQuery): Promise<ChatList> {
    const { sessions, nextCursor } = await this.sessions.list(principal, query);
    return { chats: sessions.map(toChatView), ...(nextCursor === undefined ? {} : { nextCursor }) };
  }

  async remove(principal: Principal, chatId: string): Promise<void> {
    await this.sessions.erase(principal, chatId);
  }

  /** Returns the session of a chat. A message of the user creates it if necessary; answers of the user do not. */
  private async sessionFor(principal: Principal, chatId: string, { message }: ChatRequest): Promise<Session> {
    if (message.role === 'user') return this.sessions.open(principal, chatId);
    const session = await this.sessions.find(principal, chatId);
    if (!session) throw new TurnNotFoundError(message.id, httpMessages.unknownAnswer(message.id));
    return session;
  }

  private async isRecent(turnId: string): Promise<boolean> {
    try {
      return isOpenOrRecent(await this.turns.get(turnId), RECONNECT_MS);
    } catch (error) {
      if (TurnNotFoundError.isInstance(error)) return false;
      throw error;
    }
  }
}

function toChatView({ id, state, createdAt, lastActivityAt, metadata }: Session): ChatView {
  return { id, state, createdAt, lastActivityAt, metadata };
}
