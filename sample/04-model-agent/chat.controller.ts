import { Body, Controller, Get, Headers, HttpCode, Inject, Post, Query, Req, Sse, UseGuards } from '@nestjs/common';
import {
  CurrentSession,
  CurrentTurn,
  InjectOrchestrator,
  type ConversationMessage,
  OrchestratorHandle,
  type Session,
  SESSIONS_ADAPTER,
  SessionGuard,
  type SessionsAdapter,
  SessionStore,
  type Turn,
  type TurnEventMessage,
  type TurnResult,
  TurnService,
  UnauthenticatedError,
  UseSession,
} from 'nestjs-agent-sessions';
import { type Observable } from 'rxjs';
import { PageDto, SayDto } from '../01-support-desk/chat.dto.js';
import { HeaderAuthGuard } from '../01-support-desk/header-auth.guard.js';
import { SupportAgent } from './support.agent.js';

@Controller()
@UseGuards(HeaderAuthGuard, SessionGuard)
export class ChatController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
    @InjectOrchestrator(SupportAgent) private readonly agent: OrchestratorHandle,
    @Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter,
  ) {}

  @Post('sessions')
  start(@Req() { user }: { user?: { id: string } }): Promise<Session> {
    if (!user) throw new UnauthenticatedError();
    return this.sessions.create({ userId: user.id });
  }

  /** Responds when the turn has settled. */
  @Post('turns')
  @UseSession({ touch: false })
  say(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<TurnResult> {
    return this.agent.execute(input, { sessionId });
  }

  /** Responds immediately; `turns/:turnId/events` streams the answer. */
  @Post('turns/submit')
  @HttpCode(202)
  @UseSession({ touch: false })
  async submit(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<object> {
    const { id, status } = await this.agent.submit(input, { sessionId });
    return { id, status };
  }

  /** Streams the events `delta` and `tool`, then `settled`. */
  @Sse('turns/:turnId/events')
  @UseSession({ touch: false })
  events(@CurrentTurn() turn: Turn, @Headers('last-event-id') after?: string): Promise<Observable<TurnEventMessage>> {
    return this.turns.events(turn.id, { after });
  }

  /** Cancels an answer, which also closes the connection to the model. */
  @Post('turns/:turnId/cancel')
  @HttpCode(202)
  @UseSession({ touch: false })
  async cancel(@CurrentTurn() { id }: Turn): Promise<object> {
    await this.turns.cancel(id);
    return { id };
  }

  /** Returns how the turn was answered. */
  @Get('turns/:turnId')
  @UseSession({ touch: false })
  turn(@CurrentTurn() { id, status, turnIndex, reply, report }: Turn): object {
    return { id, status, turnIndex, reply: reply?.text ?? null, report };
  }

  @Get('messages')
  @UseSession({ touch: false })
  messages(@CurrentSession() { id: sessionId }: Session, @Query() page: PageDto): Promise<ConversationMessage[]> {
    return this.store.conversations.page(sessionId, { ...page });
  }
}
