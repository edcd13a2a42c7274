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
import { type Observable } from 'rxjs';
import {
  CurrentSession,
  CurrentTurn,
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
import { PageDto, SayDto, StartDto } from './chat.dto.js';
import { HeaderAuthGuard } from './header-auth.guard.js';
import { type Desk, SupportDesk } from './support-desk.orchestrator.js';

interface SignedIn {
  readonly user?: { readonly id: string };
}

@Controller()
@UseGuards(HeaderAuthGuard, SessionGuard)
export class ChatController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
    @InjectOrchestrator(SupportDesk) private readonly desk: OrchestratorHandle<Desk>,
    @Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter,
  ) {}

  @Post('sessions')
  start(@Req() { user }: SignedIn, @Body() _: StartDto): Promise<Session> {
    if (!user) throw new UnauthenticatedError();
    return this.sessions.create({ userId: user.id });
  }

  @Get('session')
  @UseSession({ touch: false })
  session(@CurrentSession() session: Session): Session {
    return session;
  }

  /**
   * Answers once the turn has settled: it waits in the session's lane behind those that came before. The turn touches the
   * session when it settles; the guard must not, or a message that is refused would have resumed it.
   */
  @Post('turns')
  @UseSession({ touch: false })
  say(
    @CurrentSession() session: Session,
    @Body() { input }: SayDto,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<TurnResult> {
    return this.desk.execute(input, {
      sessionId: session.id,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
  }

  /** Answers at once; what becomes of the turn is at `turns/:turnId/events`. */
  @Post('turns/submit')
  @HttpCode(202)
  @UseSession({ touch: false })
  async submit(@CurrentSession() session: Session, @Body() { input }: SayDto): Promise<object> {
    return toView(await this.desk.submit(input, { sessionId: session.id }));
  }

  /** The answer word by word, for an EventSource: it connects again by itself and goes on where it was. */
  @Sse('turns/:turnId/events')
  @UseSession({ touch: false })
  events(@CurrentTurn() turn: Turn, @Headers('last-event-id') after?: string): Promise<Observable<TurnEventMessage>> {
    return this.turns.events(turn.id, { after });
  }

  @Get('turns/:id')
  async turn(@Param('id') id: string, @Req() { user }: SignedIn): Promise<object> {
    if (!user) throw new UnauthenticatedError();
    const turn = await this.turns.get(id);
    const session = turn && (await this.sessions.get(turn.sessionId));
    // Somebody else's turn and an unknown one look the same.
    if (!turn || session?.userId !== user.id) throw new TurnNotFoundError(id);
    return toView(turn);
  }

  @Get('messages')
  @UseSession({ touch: false })
  messages(@CurrentSession() session: Session, @Query() page: PageDto): Promise<Message[]> {
    return this.store.conversations.page(session.id, { ...page });
  }
}

function toView({ id, sessionId, status, turnIndex, reply, acceptedAt, settledAt }: Turn): object {
  return { id, sessionId, status, turnIndex, reply: reply?.text ?? null, acceptedAt, settledAt };
}
