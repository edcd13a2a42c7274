import { Allow } from 'class-validator';
import { MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { MustBeStatuses, MustBeWhenBusy } from '../../turn/turn.inputs.js';
import { type TurnInput, type TurnStatus, type WhenBusy } from '../../ledger/turn.js';

const MAX_PAGE = 200;

/** What a client says, as a TurnInput, and to whom. */
export class SubmitTurnBody implements TurnInput {
  @Allow()
  text!: TurnInput['text'];

  @Allow()
  content?: TurnInput['content'];

  @Allow()
  metadata?: TurnInput['metadata'];

  /** The orchestrator that is spoken to. Default: the only one that clients may speak to. */
  @Optional()
  @MustBeName()
  orchestrator?: string;

  /** One that clients may name. Default: the module's. */
  @Optional()
  @MustBeWhenBusy()
  whenBusy?: WhenBusy;
}

/** Which turns of the session to list. */
export class ListTurnsQuery {
  @Optional()
  @MustBeStatuses()
  status?: TurnStatus | TurnStatus[];

  /** Turns at later positions than this; default 0. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** Turns of a page, at most. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}
