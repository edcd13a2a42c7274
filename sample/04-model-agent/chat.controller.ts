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
  InjectOrchestrator,
  type Message,
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

  /** Answers once the turn has settled. */
  @Post('turns')
  @UseSession({ touch: false })
  say(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<TurnResult> {
    return this.agent.execute(input, { sessionId });
  }

  /** Answers at once; the words come from `turns/:id/events`. */
  @Post('turns/submit')
  @HttpCode(202)
  @UseSession({ touch: false })
  async submit(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<object> {
    const { id, status } = await this.agent.submit(input, { sessionId });
    return { id, status };
  }

  /** Events `delta` and `tool`; then `settled`. */
  @Sse('turns/:id/events')
  @UseSession({ touch: false })
  async events(
    @CurrentSession() session: Session,
    @Param('id') id: string,
    @Headers('last-event-id') after?: string,
  ): Promise<Observable<TurnEventMessage>> {
    await this.turnOf(session, id);
    return this.turns.events(id, { after });
  }

  /** The button that stops an answer; the model's connection is closed with it. */
  @Post('turns/:id/cancel')
  @HttpCode(202)
  @UseSession({ touch: false })
  async cancel(@CurrentSession() session: Session, @Param('id') id: string): Promise<object> {
    await this.turnOf(session, id);
    await this.turns.cancel(id);
    return { id };
  }

  /** What is known of how the turn was answered. */
  @Get('turns/:id')
  @UseSession({ touch: false })
  async turn(@CurrentSession() session: Session, @Param('id') id: string): Promise<object> {
    const { status, turnIndex, reply, report } = await this.turnOf(session, id);
    return { id, status, turnIndex, reply: reply?.text ?? null, report };
  }

  @Get('messages')
  @UseSession({ touch: false })
  messages(@CurrentSession() { id: sessionId }: Session, @Query() page: PageDto): Promise<Message[]> {
    return this.store.conversations.page(sessionId, { ...page });
  }

  private async turnOf(session: Session, id: string): Promise<Turn> {
    const turn = await this.turns.get(id);
    // Somebody else's turn and an unknown one look the same.
    if (turn?.sessionId !== session.id) throw new TurnNotFoundError(id);
    return turn;
  }
}
