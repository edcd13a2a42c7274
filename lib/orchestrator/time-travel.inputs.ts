import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import { WHEN_BUSY, type WhenBusy } from '../ledger/turn.js';

/** Which checkpoints of a session to list; the latest first. */
export class HistoryQuery {
  /** Those with an index below this one; default: from the latest. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  before?: number;

  /** At most this many; default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** How a command is waited for. */
class CommandWait {
  /** Milliseconds after which the caller stops waiting; the command goes on. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;

  /** Adopt the orchestrator's present shape, although the checkpoint to go on from was written by another. Default false. */
  @Optional()
  @MustBeBoolean()
  force?: boolean;
}

/** How a turn is taken back (BOT-25). */
export class UndoOptions extends CommandWait {
  /** The same key is one undo, however often it is sent. Default: no key, each call is an undo. */
  @Optional()
  @MustBeName()
  idempotencyKey?: string;

  /** What to do when the session is busy; default: the module's `turns.whenBusy`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;
}

/** Where a fork begins, and whose it is (BOT-25). */
export class ForkOptions extends CommandWait {
  /** The index of the last turn that the fork has; default: the latest. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  atTurn?: number;

  /** The id of the fork's session; sent again with the same one, it is the same fork. Default: minted, so that each call makes a session. */
  @Optional()
  @Must(isId, ID_RULE)
  newSessionId?: string;

  /** Whose the fork is. Default: the owner of the session that is forked. */
  @Optional()
  @MustBeName()
  userId?: string;

  /** Metadata of the fork's session: JSON, copied. Default: that of the session that is forked. */
  @Allow()
  metadata?: Record<string, unknown>;
}
