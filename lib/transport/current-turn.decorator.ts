import { createParamDecorator, type ExecutionContext, Injectable, type PipeTransform } from '@nestjs/common';
import { assertId } from '../common/ids.js';
import { TurnNotFoundError } from '../ledger/turn.errors.js';
import { TurnService } from '../turn/turn.service.js';
import { type Turn } from '../ledger/turn.js';
import { requiredSession } from './carried-session.js';
import { type IdSource, readSource } from './id-source.js';
import { transportOf } from './transport-of.js';

/** Where `@CurrentTurn` finds the turn. */
export interface CurrentTurnOptions {
  /** Where its id stands. Default `param:turnId` in HTTP, `data:turnId` elsewhere. */
  readonly from?: IdSource;
}

/** A turn as a request names it. */
interface NamedTurn {
  /** The session that the request may use. */
  readonly sessionId: string;
  /** As it came. */
  readonly turnId: unknown;
}

/** Loads it. Decorators of parameters cannot inject, so theirs brings a pipe that can. */
@Injectable()
export class CurrentTurnPipe implements PipeTransform<NamedTurn, Promise<Turn>> {
  constructor(private readonly turns: TurnService) {}

  async transform({ sessionId, turnId }: NamedTurn): Promise<Turn> {
    assertId(turnId, 'turnId');
    const turn = await this.turns.get(turnId);
    if (turn?.sessionId !== sessionId) throw new TurnNotFoundError(turnId);
    return turn;
  }
}

const TurnOfRequest = createParamDecorator(
  async ({ from }: CurrentTurnOptions, context: ExecutionContext): Promise<NamedTurn> => ({
    sessionId: requiredSession(context, 'asks for @CurrentTurn()', 'AuthGuard, SessionGuard').id,
    turnId: await readSource(context, from ?? transportOf(context).turnAt),
  }),
);

/**
 * The turn that the request names, when it is of the session that `SessionGuard` found (NST-13). An unknown turn and another
 * session's are the same 404, `TurnNotFoundError`; a missing or malformed id is an `InvalidInputError`.
 */
export const CurrentTurn = (options: CurrentTurnOptions = {}): ParameterDecorator =>
  TurnOfRequest(options, CurrentTurnPipe);
