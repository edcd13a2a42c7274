import { Body, Controller, Req, RequestMethod, Sse, UseGuards } from '@nestjs/common';
import {
  AffinityResolver,
  InjectOrchestrator,
  OrchestratorHandle,
  resolveSession,
  SessionStore,
  type TurnEventMessage,
  TurnService,
  UnauthenticatedError,
} from 'nestjs-agent-sessions';
import { type Observable } from 'rxjs';
import { SayDto } from './chat.dto.js';
import { HeaderAuthGuard, type SampleRequest } from './header-auth.guard.js';
import { type Desk, SupportDesk } from './support-desk.orchestrator.js';

/** Answers `curl -N`: a question and its streamed answer in one request. */
@Controller('ask')
@UseGuards(HeaderAuthGuard)
export class TerminalController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly affinity: AffinityResolver,
    private readonly turns: TurnService,
    @InjectOrchestrator(SupportDesk) private readonly desk: OrchestratorHandle<Desk>,
  ) {}

  /** Uses the user's latest session, or creates one, because the request names none. */
  @Sse('', { method: RequestMethod.POST })
  async ask(@Req() { user }: SampleRequest, @Body() { input }: SayDto): Promise<Observable<TurnEventMessage>> {
    if (!user) throw new UnauthenticatedError();
    const session = await resolveSession({ userId: user.id, surfaceId: 'terminal' }, this.sessions, this.affinity);
    const turn = await this.desk.submit(input, { sessionId: session.id });
    return this.turns.events(turn.id);
  }
}
