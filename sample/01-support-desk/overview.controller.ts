import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import {
  CurrentSession,
  OrchestrationService,
  type Session,
  SessionGuard,
  type Turn,
  TurnService,
} from 'nestjs-agent-sessions';
import { PageDto } from './chat.dto.js';
import { CookieAuthGuard } from './cookie-auth.guard.js';
import { HeaderAuthGuard } from './header-auth.guard.js';
import { REFUND_STEPS, TOOLS } from './refund-plan.js';
import { UseDeskSession } from './use-desk-session.decorator.js';

/** Returns the data of the page's panel, from the module's services. */
@Controller('overview')
@UseGuards(HeaderAuthGuard, CookieAuthGuard, SessionGuard)
export class OverviewController {
  constructor(
    private readonly turns: TurnService,
    private readonly orchestration: OrchestrationService,
  ) {}

  /** Returns the overview with the turns after a position. Clients that know the first settled turns request only the others. */
  @Get()
  @UseDeskSession()
  async overview(@CurrentSession() session: Session, @Query() page: PageDto): Promise<object> {
    const [step, tools, lane, turns] = await Promise.all([
      this.orchestration.getActiveStep(session.id),
      this.orchestration.getAvailableTools(session.id, TOOLS),
      this.turns.lanes.get(session.id),
      this.turns.list({ sessionId: session.id, ...page }),
    ]);
    const { id, state, lastActivityAt, attachedSurfaces } = session;
    return {
      session: { id, state, lastActivityAt, attachedSurfaces },
      plan: REFUND_STEPS.map(({ name }) => name),
      step: { name: step?.name, description: step?.description, tools },
      lane: { queued: lane.queued },
      turns: await Promise.all(turns.map((turn) => this.toRow(turn))),
    };
  }

  private async toRow(turn: Turn): Promise<object> {
    const { id, idempotencyKey, position, status, request, reply, failures, lost, acceptedAt, startedAt, settledAt } =
      turn;
    return {
      id,
      idempotencyKey,
      position,
      status,
      input: request.input.text,
      reply: status === 'cancelled' ? await this.saidUntilStopped(id) : (reply?.text ?? null),
      failures,
      lost,
      acceptedAt,
      startedAt,
      settledAt,
    };
  }

  /** The text of a stopped turn comes from its events, because it has no reply. */
  private async saidUntilStopped(turnId: string): Promise<string> {
    let text = '';
    for await (const { type, data } of this.turns.readEvents(turnId)) {
      if (type === 'attempt') text = '';
      if (type === 'delta') text += (data as { text: string }).text;
    }
    return text;
  }
}
