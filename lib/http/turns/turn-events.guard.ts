import { type ServerResponse } from 'node:http';
import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { type TurnEventMessage } from '../../ledger/turn-event.js';
import { type Session } from '../../ledger/session.js';
import { sessionOf } from '../../transport/carried-session.js';
import { type HttpRequest } from '../controllers/http-request.js';
import { StreamGuard } from '../controllers/stream.guard.js';
import { ClientTurns } from './client-turns.js';

/** Opens the events of a turn. */
@Injectable()
export class TurnEventsGuard extends StreamGuard {
  constructor(@Inject(ClientTurns) private readonly turns: ClientTurns) {
    super();
  }

  protected open(
    context: ExecutionContext,
    request: HttpRequest,
    response: ServerResponse,
  ): Promise<Observable<TurnEventMessage>> {
    const { 'last-event-id': after } = request.headers;
    const session = sessionOf(context, TurnEventsGuard.name) as Session;
    return this.turns.events(session, turnIdOf(request), {
      ...(after === undefined ? {} : { after: String(after) }),
      response,
    });
  }
}

export function turnIdOf({ params }: HttpRequest): string {
  return params?.turnId ?? '';
}
