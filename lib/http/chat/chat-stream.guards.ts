import { type ServerResponse } from 'node:http';
import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { type Observable, of } from 'rxjs';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type HttpRequest, readQuery } from '../controllers/http-request.js';
import { principalOf } from '../controllers/principal.guard.js';
import { StreamGuard } from '../controllers/stream.guard.js';
import { isNothingToResume } from '../http.errors.js';
import { readJson } from './chat-body.js';
import { type ChatMessage, ChatResponses } from './chat-responses.js';
import { type ChatRange, ChatStream } from './chat-stream.js';
import { ChatStreamQuery, toChatRequest } from './chat.inputs.js';
import { ClientChats } from './client-chats.js';

/** The name of a response: a turn, and the segment of its answer that the response begins with. */
const RUN = /^(.+)~(\d{1,9})$/;
/** The header from which a client with a negative `startIndex` computes the index of the first chunk. */
const TAIL_INDEX = 'x-workflow-stream-tail-index';
/** The response if there is nothing to resume. */
const NOTHING: ChatMessage = { data: '{"type":"finish"}' };

/** Accepts the message of a chat, and opens the response to it. */
@Injectable()
export class ChatSendGuard extends StreamGuard {
  constructor(
    @Inject(ClientChats) private readonly chats: ClientChats,
    @Inject(ChatResponses) private readonly responses: ChatResponses,
  ) {
    super();
  }

  protected async open(
    context: ExecutionContext,
    request: HttpRequest,
    response: ServerResponse,
  ): Promise<Observable<ChatMessage>> {
    const principal = principalOf(context);
    const sent = toChatRequest(await readJson(request));
    const id = request.params?.id ?? sent.id;
    if (id === undefined) throw new InvalidInputError('body.id', 'is missing. Add the id of the chat.');
    return this.responses.open({ principal, response, chatId: id }, () => this.chats.accept(principal, id, sent));
  }
}

/** Opens a response again. */
@Injectable()
export class ChatResumeGuard extends StreamGuard {
  constructor(
    @Inject(ClientChats) private readonly chats: ClientChats,
    @Inject(ChatResponses) private readonly responses: ChatResponses,
    @Inject(ChatStream) private readonly stream: ChatStream,
  ) {
    super();
  }

  protected async open(
    context: ExecutionContext,
    request: HttpRequest,
    response: ServerResponse,
  ): Promise<Observable<ChatMessage>> {
    const principal = principalOf(context);
    const { startIndex } = readQuery(ChatStreamQuery, request, ['startIndex']);
    if (startIndex !== undefined && this.stream.protocol === 6) {
      // Its responses may begin with a replay, so the chunks of two responses cannot be counted.
      const problem = 'must not be set with `protocol: 6`. Set `protocol: 7` of the chat controller.';
      throw new InvalidInputError('query.startIndex', problem);
    }
    const skip = startIndex === undefined ? undefined : Math.max(startIndex, 0);
    // With `startIndex`, the id may be the name of a response.
    const id = request.params?.run ?? idOf(request);
    const run = skip === undefined ? null : RUN.exec(id);
    // A client with a negative index asks for the last chunks only, which are of no use without those before. It gets the
    // whole response: from this header it computes that the first chunk has index 0.
    if (startIndex !== skip) response.setHeader(TAIL_INDEX, String(-1 - startIndex!));
    const find = async (): Promise<ChatRange> => {
      if (run) return { ...(await this.chats.responseOf(principal, run[1], Number(run[2]))), skip };
      if (skip === undefined) return this.chats.resume(principal, id);
      const { named } = this.responses;
      const begun = skip > 0 ? await this.chats.continued(principal, named.of(principal, id)) : undefined;
      if (begun) return { ...begun, skip };
      const range = await this.chats.resume(principal, id, skip);
      named.add(principal, id, range);
      return range;
    };
    try {
      return await this.responses.open({ principal, response }, find);
    } catch (error) {
      // WorkflowChatTransport takes a 204 for an error.
      if (skip === 0 && isNothingToResume(error)) return of(NOTHING);
      throw error;
    }
  }
}

export function idOf({ params }: HttpRequest): string {
  return params?.id ?? '';
}
