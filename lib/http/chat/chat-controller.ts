import { Delete, Get, HttpCode, Inject, Post, Req, Sse, type Type, UseGuards } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { type Principal } from '../../transport/principal.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { type ControllerOptions } from '../controllers/controllers.options.js';
import { GuardedController } from '../controllers/guarded-controller.js';
import { type HttpRequest, readQuery } from '../controllers/http-request.js';
import { CurrentPrincipal, PrincipalGuard } from '../controllers/principal.guard.js';
import { OpenedStream } from '../controllers/stream.guard.js';
import { readOptionalJson } from './chat-body.js';
import { describedAs } from './chat-openapi.js';
import { type ChatMessage } from './chat-responses.js';
import { ChatResumeGuard, ChatSendGuard, idOf } from './chat-stream.guards.js';
import { ChatMessagesQuery, ListChatsQuery, toStopRequest } from './chat.inputs.js';
import { type ChatList, type ChatMessages, ClientChats, type StoppedChat } from './client-chats.js';

/** Creates the controller for chat front ends of the AI SDK (AIS-10), protected by these guards. */
export function chatController({ guards, path = 'chat' }: ControllerOptions): Type<unknown> {
  @GuardedController({ path, guards: [...guards, PrincipalGuard], filter: ControllersExceptionFilter })
  class ChatController {
    constructor(@Inject(ClientChats) private readonly chats: ClientChats) {}

    @Post()
    @HttpCode(200)
    @Sse()
    @UseGuards(ChatSendGuard)
    @describedAs('send')
    send(@OpenedStream() stream: Observable<ChatMessage>): Observable<ChatMessage> {
      return stream;
    }

    @Post(':id')
    @HttpCode(200)
    @Sse(':id')
    @UseGuards(ChatSendGuard)
    @describedAs('sendTo')
    sendTo(@OpenedStream() stream: Observable<ChatMessage>): Observable<ChatMessage> {
      return stream;
    }

    @Sse(':id/stream')
    @UseGuards(ChatResumeGuard)
    @describedAs('resume')
    resume(@OpenedStream() stream: Observable<ChatMessage>): Observable<ChatMessage> {
      return stream;
    }

    @Sse(':id/:run/stream')
    @UseGuards(ChatResumeGuard)
    @describedAs('resumeRun')
    resumeRun(@OpenedStream() stream: Observable<ChatMessage>): Observable<ChatMessage> {
      return stream;
    }

    @Post(':id/stop')
    @HttpCode(200)
    @describedAs('stop')
    async stop(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<StoppedChat> {
      return this.chats.stop(principal, idOf(request), toStopRequest(await readOptionalJson(request)));
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
  }
  return ChatController;
}
