import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { MustBeStatuses, MustBeWhenBusy } from '../../turn/turn.inputs.js';
import { type TurnInput, type TurnStatus, type WhenBusy } from '../../ledger/turn.js';

const MAX_PAGE = 200;

/** The body of a new turn: a TurnInput with options. */
export class SubmitTurnBody implements TurnInput {
  @Allow()
  text!: TurnInput['text'];

  @Allow()
  content?: TurnInput['content'];

  @Allow()
  metadata?: TurnInput['metadata'];

  /** The orchestrator that handles the turn. Default: the only one that clients may use. */
  @Optional()
  @MustBeName()
  orchestrator?: string;

  /** One of the policies that clients may choose. Default: the policy of the module. */
  @Optional()
  @MustBeWhenBusy()
  whenBusy?: WhenBusy;
}

/** Selects turns of the session. */
export class ListTurnsQuery {
  @Optional()
  @MustBeStatuses()
  status?: TurnStatus | TurnStatus[];

  /** Returns turns after this position. Default 0. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** Maximum number of turns per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Selects a page of the conversation. */
export class ConversationQuery {
  /** The `before` of the page of later turns. Default: the latest page. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be the `before` of an earlier response, unchanged.')
  before?: string;

  /** Maximum number of turns per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}
