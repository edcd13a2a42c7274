import { Get, HttpCode, Inject, Post, Req, Res, Sse, type Type, UseGuards } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { type Session } from '../../ledger/session.js';
import { type TurnEventMessage } from '../../ledger/turn-event.js';
import { CurrentSession, UseSession } from '../../transport/session.decorators.js';
import { SessionGuard } from '../../transport/session.guard.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { type ControllerOptions } from '../controllers/controllers.options.js';
import { GuardedController } from '../controllers/guarded-controller.js';
import { addressOf, type HttpRequest, readIdempotencyKey, readBody, readQuery } from '../controllers/http-request.js';
import { type HttpResponse } from '../controllers/http-response.js';
import { OpenedStream } from '../controllers/stream.guard.js';
import { ClientTurns, type TurnList } from './client-turns.js';
import { type ConversationPage } from './conversation-view.js';
import { TurnEventsGuard, turnIdOf } from './turn-events.guard.js';
import { type TurnView } from './turn-view.js';
import { describedAs } from './turns-openapi.js';
import { ConversationQuery, ListTurnsQuery, SubmitTurnBody } from './turns.inputs.js';

/** Creates the controller for turns of the principal's own sessions, protected by these guards. */
export function turnsController({ guards, path = 'turns' }: ControllerOptions): Type<unknown> {
  @GuardedController({ path, guards: [...guards, SessionGuard], filter: ControllersExceptionFilter })
  // Only accepted turns count as activity. The parameter of some routes is the id of a turn.
  @UseSession({ from: 'header:x-session-id', touch: false })
  class TurnsController {
    constructor(@Inject(ClientTurns) private readonly turns: ClientTurns) {}

    @Post()
    @HttpCode(202)
    @describedAs('submit')
    async submit(
      @Req() request: HttpRequest,
      @CurrentSession() session: Session,
      @Res({ passthrough: true }) response: HttpResponse,
    ): Promise<TurnView> {
      const turn = await this.turns.submit(session, readBody(SubmitTurnBody, request), readIdempotencyKey(request));
      response.header('Location', `${pathOf(request)}/${encodeURIComponent(turn.id)}`);
      return turn;
    }

    @Get()
    @describedAs('list')
    list(@Req() request: HttpRequest, @CurrentSession() session: Session): Promise<TurnList> {
      return this.turns.list(session.id, readQuery(ListTurnsQuery, request, ['after', 'limit']));
    }

    // Before the route of a turn, which it also matches.
    @Get('messages')
    @describedAs('messages')
    messages(@Req() request: HttpRequest, @CurrentSession() session: Session): Promise<ConversationPage> {
      return this.turns.conversation(session.id, readQuery(ConversationQuery, request, ['limit']));
    }

    @Get(':turnId')
    @describedAs('get')
    get(@Req() request: HttpRequest, @CurrentSession() session: Session): Promise<TurnView> {
      return this.turns.get(session.id, turnIdOf(request));
    }

    @Post(':turnId/cancel')
    @HttpCode(200)
    @describedAs('cancel')
    cancel(@Req() request: HttpRequest, @CurrentSession() session: Session): Promise<TurnView> {
      return this.turns.cancel(session.id, turnIdOf(request));
    }

    @Sse(':turnId/events')
    @UseGuards(TurnEventsGuard)
    @describedAs('events')
    events(@OpenedStream() stream: Observable<TurnEventMessage>): Observable<TurnEventMessage> {
      return stream;
    }
  }
  return TurnsController;
}

function pathOf(request: HttpRequest): string {
  return addressOf(request).split('?')[0].replace(/\/$/, '');
}
