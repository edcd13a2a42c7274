import { Body, Controller, Get, HttpCode, Inject, Post, Query, Req, UseGuards } from '@nestjs/common';
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
  type TurnResult,
  TurnService,
  UnauthenticatedError,
  UseSession,
} from 'nestjs-agent-sessions';
import { PageDto, SayDto } from '../01-support-desk/chat.dto.js';
import { HeaderAuthGuard } from '../01-support-desk/header-auth.guard.js';
import { Assistant } from './assistant.orchestrator.js';
import { toView, type TurnView } from './turn-view.js';
import { WorkerNotes } from './worker-notes.service.js';

@Controller()
@UseGuards(HeaderAuthGuard, SessionGuard)
export class ChatController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
    @InjectOrchestrator(Assistant) private readonly assistant: OrchestratorHandle,
    private readonly notes: WorkerNotes,
    @Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter,
  ) {}

  @Post('sessions')
  start(@Req() { user }: { user?: { id: string } }): Promise<Session> {
    if (!user) throw new UnauthenticatedError();
    return this.sessions.create({ userId: user.id });
  }

  /** Adds a turn to the session's lane and responds immediately. */
  @Post('turns')
  @HttpCode(202)
  @UseSession({ touch: false })
  async submit(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<TurnView> {
    return toView(await this.assistant.submit(input, { sessionId }), null);
  }

  /** Adds a turn and responds with its result, whichever worker runs it. */
  @Post('answers')
  @HttpCode(200)
  @UseSession({ touch: false })
  answer(@CurrentSession() { id: sessionId }: Session, @Body() { input }: SayDto): Promise<TurnResult> {
    return this.assistant.execute(input, { sessionId, timeoutMs: 60_000 });
  }

  @Get('turns')
  @UseSession({ touch: false })
  async lane(@CurrentSession() { id: sessionId }: Session, @Query() page: PageDto): Promise<TurnView[]> {
    const [note, turns] = await Promise.all([this.notes.read(sessionId), this.turns.list({ sessionId, ...page })]);
    return turns.map((turn) => toView(turn, note));
  }

  @Get('turns/:turnId')
  @UseSession({ touch: false })
  async turn(@CurrentTurn() turn: Turn): Promise<TurnView> {
    return toView(turn, await this.notes.read(turn.sessionId));
  }

  @Get('messages')
  @UseSession({ touch: false })
  messages(@CurrentSession() { id: sessionId }: Session, @Query() page: PageDto): Promise<ConversationMessage[]> {
    return this.store.conversations.page(sessionId, { ...page });
  }
}
