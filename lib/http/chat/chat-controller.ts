import { Delete, Get, HttpCode, Inject, Post, Req, Res, Sse, type Type } from '@nestjs/common';
import { EMPTY, type Observable, of } from 'rxjs';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type Principal } from '../../transport/principal.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { type ControllerOptions } from '../controllers/controllers.options.js';
import { GuardedController } from '../controllers/guarded-controller.js';
import { type HttpRequest, readQuery } from '../controllers/http-request.js';
import { type HttpResponse, rawResponse } from '../controllers/http-response.js';
import { CurrentPrincipal, PrincipalGuard } from '../controllers/principal.guard.js';
import { NothingToResumeError } from '../http.errors.js';
import { readJson } from './chat-body.js';
import { describedAs } from './chat-openapi.js';
import { type ChatMessage, ChatResponses } from './chat-responses.js';
import { type ChatRange } from './chat-stream.js';
import { ChatMessagesQuery, ChatStreamQuery, ListChatsQuery, toChatRequest } from './chat.inputs.js';
import { type ChatList, type ChatMessages, ClientChats, type StoppedChat } from './client-chats.js';

/** The name of a response: a turn, and the segment of its answer that the response begins with. */
const RUN = /^(.+)~(\d{1,9})$/;
/** The header from which a client with a negative `startIndex` computes the index of the first chunk. */
const TAIL_INDEX = 'x-workflow-stream-tail-index';
/** The response if there is nothing to resume. */
const NOTHING: ChatMessage = { data: '{"type":"finish"}' };

/** Creates the controller for chat front ends of the AI SDK (AIS-10), protected by these guards. */
export function chatController({ guards, path = 'chat' }: ControllerOptions): Type<unknown> {
  @GuardedController({ path, guards: [...guards, PrincipalGuard], filter: ControllersExceptionFilter })
  class ChatController {
    constructor(
      @Inject(ClientChats) private readonly chats: ClientChats,
      @Inject(ChatResponses) private readonly responses: ChatResponses,
    ) {}

    @Post()
    @HttpCode(200)
    @Sse()
    @describedAs('send')
    send(
      @Req() request: HttpRequest,
      @CurrentPrincipal() principal: Principal,
      @Res({ passthrough: true }) response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      return this.accept(request, principal, response);
    }

    @Post(':id')
    @HttpCode(200)
    @Sse(':id')
    @describedAs('sendTo')
    sendTo(
      @Req() request: HttpRequest,
      @CurrentPrincipal() principal: Principal,
      @Res({ passthrough: true }) response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      return this.accept(request, principal, response);
    }

    @Sse(':id/stream')
    @describedAs('resume')
    resume(
      @Req() request: HttpRequest,
      @CurrentPrincipal() principal: Principal,
      @Res({ passthrough: true }) response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      return this.reopen(idOf(request), request, principal, response);
    }

    @Sse(':id/:run/stream')
    @describedAs('resumeRun')
    resumeRun(
      @Req() request: HttpRequest,
      @CurrentPrincipal() principal: Principal,
      @Res({ passthrough: true }) response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      return this.reopen(request.params?.run ?? '', request, principal, response);
    }

    @Post(':id/stop')
    @HttpCode(200)
    @describedAs('stop')
    stop(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<StoppedChat> {
      return this.chats.stop(principal, idOf(request));
    }

    @Get(':id/messages')
    @describedAs('messages')
    messages(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<ChatMessages> {
      return this.chats.messages(principal, idOf(request), readQuery(ChatMessagesQuery, request, ['limit']));
    }

    @Get()
    @describedAs('list')
    list(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<ChatList> {
      return this.chats.list(principal, readQuery(ListChatsQuery, request, ['limit']));
    }

    @Delete(':id')
    @HttpCode(204)
    @describedAs('remove')
    remove(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<void> {
      return this.chats.remove(principal, idOf(request));
    }

    private async accept(
      request: HttpRequest,
      principal: Principal,
      response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      const sent = toChatRequest(await readJson(request));
      const id = request.params?.id ?? sent.id;
      if (id === undefined) throw new InvalidInputError('body.id', 'is missing. Add the id of the chat.');
      const client = { principal, response: rawResponse(response), chatId: id };
      return this.responses.open(client, () => this.chats.accept(principal, id, sent));
    }

    /** @param id the id of a chat or, with `startIndex`, the name of a response */
    private async reopen(
      id: string,
      request: HttpRequest,
      principal: Principal,
      response: HttpResponse,
    ): Promise<Observable<ChatMessage>> {
      const { startIndex } = readQuery(ChatStreamQuery, request, ['startIndex']);
      const skip = startIndex === undefined ? undefined : Math.max(startIndex, 0);
      const run = skip === undefined ? null : RUN.exec(id);
      const client = { principal, response: rawResponse(response) };
      // The last chunks are of no use without those before. The client learns that it gets the first one, with index 0.
      if (startIndex !== skip) client.response.setHeader(TAIL_INDEX, String(-1 - startIndex!));
      const find = async (): Promise<ChatRange> => {
        if (!run) return this.chats.resume(principal, id, skip);
        return { ...(await this.chats.responseOf(principal, run[1], Number(run[2]))), skip };
      };
      try {
        const events = await this.responses.open(client, find);
        // A HEAD response ends after its headers; the client reuses the connection.
        return request.method === 'HEAD' ? EMPTY : events;
      } catch (error) {
        // WorkflowChatTransport takes a 204 for an error.
        if (skip === 0 && error instanceof NothingToResumeError) return of(NOTHING);
        throw error;
      }
    }
  }
  return ChatController;
}

function idOf({ params }: HttpRequest): string {
  return params?.id ?? '';
}
