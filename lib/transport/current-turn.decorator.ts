import { type ExecutionContext, Injectable, type PipeTransform } from '@nestjs/common';
import { assertId } from '../common/ids.js';
import { placeOf } from '../common/method-mark.js';
import { TurnNotFoundError } from '../ledger/turn.errors.js';
import { TurnService } from '../turn/turn.service.js';
import { type Turn } from '../ledger/turn.js';
import { requiredSession } from './carried-session.js';
import { assertSource, type IdSource, readSource } from './id-source.js';
import { sessionParameter } from './session-parameter.js';
import { transportOf } from './transport-of.js';

/** The options of `@CurrentTurn`. */
export interface CurrentTurnOptions {
  /** The location of the turn's id. Default `param:turnId` in HTTP, `data:turnId` elsewhere. */
  readonly from?: IdSource;
}

/** The turn that a request names. */
interface NamedTurn {
  /** The session that the request may use. */
  readonly sessionId: string;
  /** The unvalidated id. */
  readonly turnId: unknown;
}

/** Loads the turn. Parameter decorators cannot inject providers, but their pipes can. */
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

const TurnOfRequest = sessionParameter(
  '@CurrentTurn()',
  async ({ from }: CurrentTurnOptions, context: ExecutionContext): Promise<NamedTurn> => ({
    sessionId: requiredSession(context, 'asks for @CurrentTurn()', 'AuthGuard, SessionGuard').id,
    turnId: await readSource(context, from ?? transportOf(context).turnAt),
  }),
);

/**
 * Injects the turn that the request names, if it belongs to the session that `SessionGuard` loaded (NST-13). An unknown
 * turn and a turn of another session fail with the same 404, `TurnNotFoundError`; a missing or malformed id with
 * `InvalidInputError`.
 */
export const CurrentTurn = (options: CurrentTurnOptions = {}): ParameterDecorator => {
  const decorate = TurnOfRequest(options, CurrentTurnPipe);
  return (target, method, index) => {
    assertSource(placeOf(target, method), '@CurrentTurn()', options.from);
    decorate(target, method, index);
  };
};
