import {
  Body,
  Controller,
  Get,
  Headers,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  Req,
  Sse,
  UseGuards,
} from '@nestjs/common';
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
  TurnNotFoundError,
  type TurnResult,
  TurnService,
  UnauthenticatedError,
} from 'nestjs-agent-sessions';
import { type Observable } from 'rxjs';
import { PageDto, SayDto } from './chat.dto.js';
import { CookieAuthGuard } from './cookie-auth.guard.js';
import { HeaderAuthGuard, type SampleRequest } from './header-auth.guard.js';
import { type Desk, SupportDesk } from './support-desk.orchestrator.js';
import { UseDeskSession } from './use-desk-session.decorator.js';

@Controller()
@UseGuards(HeaderAuthGuard, CookieAuthGuard, SessionGuard)
export class ChatController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
    @InjectOrchestrator(SupportDesk) private readonly desk: OrchestratorHandle<Desk>,
    @Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter,
  ) {}

  /** Responds when the turn has settled, after the session's earlier turns. */
  @Post('turns')
  @UseDeskSession()
  say(
    @CurrentSession() session: Session,
    @Body() { input }: SayDto,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<TurnResult> {
    return this.desk.execute(input, { sessionId: session.id, idempotencyKey });
  }

  /** Responds immediately; `turns/:turnId/events` streams the turn. */
  @Post('turns/submit')
  @HttpCode(202)
  @UseDeskSession()
  async submit(
    @CurrentSession() session: Session,
    @Body() { input }: SayDto,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<object> {
    return toView(await this.desk.submit(input, { sessionId: session.id, idempotencyKey }));
  }

  /** Streams the answer word by word to an EventSource, which reconnects automatically and resumes after its last event. */
  @Sse('turns/:turnId/events')
  @UseDeskSession()
  events(@CurrentTurn() turn: Turn, @Headers('last-event-id') after?: string): Promise<Observable<TurnEventMessage>> {
    return this.turns.events(turn.id, { after });
  }

  /** Cancels a turn. A running turn settles as cancelled shortly afterwards. */
  @Post('turns/:turnId/cancel')
  @HttpCode(202)
  @UseDeskSession()
  async cancel(@CurrentTurn() { id }: Turn): Promise<object> {
    return toView(await this.turns.cancel(id));
  }

  @Get('turns/:id')
  async turn(@Param('id') id: string, @Req() { user }: SampleRequest): Promise<object> {
    if (!user) throw new UnauthenticatedError();
    const turn = await this.turns.get(id);
    const session = turn && (await this.sessions.get(turn.sessionId));
    // Another user's turn and an unknown turn get the same response.
    if (!turn || session?.userId !== user.id) throw new TurnNotFoundError(id);
    return toView(turn);
  }

  @Get('messages')
  @UseDeskSession()
  messages(@CurrentSession() session: Session, @Query() page: PageDto): Promise<ConversationMessage[]> {
    return this.store.conversations.page(session.id, { ...page });
  }
}

function toView({ id, sessionId, status, turnIndex, reply, acceptedAt, settledAt }: Turn): object {
  return { id, sessionId, status, turnIndex, reply: reply?.text ?? null, acceptedAt, settledAt };
}
