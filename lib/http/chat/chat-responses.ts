import { type ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { Observable } from 'rxjs';
import { errorChunk } from '../../chat/response-chunks.js';
import { type UIChunk } from '../../chat/ui-message.js';
import { traceOf } from '../../common/error-trace.js';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { repeatWhileUnavailable } from '../../common/while-unavailable.js';
import { type Principal } from '../../transport/principal.js';
import { type OpenResponses } from '../../turn/open-responses.js';
import { StreamHeartbeat } from '../../turn/stream-heartbeat.js';
import { TurnEventPace } from '../../turn/turn-event-pace.js';
import { isFault, toAnyErrorBody } from '../controllers/error-body.js';
import { type StreamSlots } from '../controllers/stream-slots.js';
import { isNothingToResume } from '../http.errors.js';
import { ChatNamedResponses } from './chat-named-responses.js';
import { type ChatRange, type ChatStream, CUT } from './chat-stream.js';

/** The header that tells clients and proxies the format. */
const FORMAT = 'x-vercel-ai-ui-message-stream';
/** The header that names a response for `WorkflowChatTransport`. */
const RUN_ID = 'x-workflow-run-id';

/** A message as Nest's `@Sse()` sends it. */
export interface ChatMessage {
  readonly id?: string;
  readonly data: string;
  readonly comment?: string;
}

/** The client of a response. */
export interface ChatClient {
  readonly principal: Principal;
  readonly response: ServerResponse;
  /** The id of the chat. It names a response that begins during an outage, when the turn is still unknown. */
  readonly chatId?: string;
}

/** Sends answers to the clients of chats. */
export class ChatResponses {
  /** Milliseconds without a chunk after which a comment is sent. Default 15,000. */
  heartbeatMs: number | undefined;
  /** Milliseconds that a client waits for headers while the store is unavailable. Then it gets headers and comments. */
  patienceMs = 10_000;
  /** The responses that clients name by their chat. */
  readonly named = new ChatNamedResponses();
  private readonly logger = new Logger(ChatResponses.name);

  constructor(
    private readonly stream: ChatStream,
    private readonly slots: StreamSlots,
    private readonly responses: OpenResponses,
  ) {}

  /**
   * Returns a response in the format of the UI message stream. While the store is unavailable, the client waits
   * (AIS-15).
   * @param find returns what to send; it is called again after StoreUnavailableError
   * @throws ProcessLimitError (`TOO_MANY_STREAMS`); what `find` throws
   */
  async open(client: ChatClient, find: () => Promise<ChatRange>): Promise<Observable<ChatMessage>> {
    const { principal, response, chatId } = client;
    this.slots.take(principal, response);
    this.responses.add(response);
    response.setHeader(FORMAT, 'v1');
    const patience = new AbortController();
    const end = (): void => patience.abort();
    const timer = setTimeout(end, this.patienceMs);
    response.once('close', end);
    try {
      const range = await repeatWhileUnavailable(find, patience.signal);
      response.setHeader(RUN_ID, `${range.turnId}~${range.segment}`);
      return this.send(response, (signal) => this.stream.chunks(range, signal));
    } catch (error) {
      if (!StoreUnavailableError.isInstance(error)) throw error;
      if (chatId !== undefined) response.setHeader(RUN_ID, chatId);
      return this.send(response, (signal) => this.chunksAfterOutage(find, client, signal));
    } finally {
      clearTimeout(timer);
      response.removeListener('close', end);
    }
  }

  private async *chunksAfterOutage(
    find: () => Promise<ChatRange>,
    { principal, chatId }: ChatClient,
    signal: AbortSignal,
  ): AsyncGenerator<UIChunk | typeof CUT, void> {
    try {
      const range = await repeatWhileUnavailable(find, signal);
      if (chatId !== undefined) this.named.add(principal, chatId, range);
      yield* this.stream.chunks(range, signal);
    } catch (error) {
      if (!isNothingToResume(error)) throw error;
      // The answer ended during the outage. If the client has only a part of it, it must not take this response for the end.
      yield CUT;
    }
  }

  /** Sends chunks as messages. Pauses while the client does not read. */
  private send(
    response: ServerResponse,
    read: (signal: AbortSignal) => AsyncIterable<UIChunk | typeof CUT>,
  ): Observable<ChatMessage> {
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      const pace = TurnEventPace.of(response);
      const comment = (text: string): void => subscriber.next({ comment: text } as ChatMessage);
      // Sends the headers.
      comment('');
      const heartbeat = new StreamHeartbeat(pace, comment, this.heartbeatMs);
      const send = async (): Promise<void> => {
        let id = 0;
        for await (const chunk of read(leaving.signal)) {
          if (chunk === CUT) {
            response.destroy();
            return;
          }
          id += 1;
          subscriber.next(pace.send({ id: String(id), data: JSON.stringify(chunk) }) as ChatMessage);
          heartbeat.sent();
          if (pace.isDue && !(await pace.pass(leaving.signal))) return;
        }
      };
      send()
        .catch((error: unknown) => {
          if (leaving.signal.aborted) return;
          if (isFault(error)) this.logger.error(traceOf(error));
          const { code, message } = toAnyErrorBody(error);
          subscriber.next({ data: JSON.stringify(errorChunk(code, message)) });
        })
        .finally(() => subscriber.complete());
      return () => {
        heartbeat.stop();
        leaving.abort();
      };
    });
  }
}
