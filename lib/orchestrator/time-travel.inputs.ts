import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import { WHEN_BUSY, type WhenBusy } from '../ledger/turn.js';

/** Selects the checkpoints of a session to list, the latest first. */
export class HistoryQuery {
  /** Returns checkpoints with an index below this one. Default: from the latest. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  before?: number;

  /** The maximum number of checkpoints. Default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** Options for waiting for a command. */
class CommandWait {
  /** Milliseconds after which the caller stops waiting; the command continues. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;

  /**
   * Adopts the orchestrator's current structure, even if the checkpoint was written by a different one. Default false.
   */
  @Optional()
  @MustBeBoolean()
  force?: boolean;
}

/** Options of `handle.undo` (BOT-25). */
export class UndoOptions extends CommandWait {
  /** Calls with the same key perform one undo. Default: no key, each call is an undo. */
  @Optional()
  @MustBeName()
  idempotencyKey?: string;

  /** How the command is handled when the session is busy. Default: the module's `turns.whenBusy`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;
}

/** Options of `handle.fork` (BOT-25). */
export class ForkOptions extends CommandWait {
  /** The index of the last turn in the fork. Default: the latest. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  atTurn?: number;

  /**
   * The id of the fork's session. Calls with the same id are the same fork. Default: generated, so each call creates a
   * session.
   */
  @Optional()
  @Must(isId, ID_RULE)
  newSessionId?: string;

  /** The owner of the fork. Default: the owner of the source session. */
  @Optional()
  @MustBeName()
  userId?: string;

  /** The metadata of the fork's session: JSON, copied. Default: that of the source session. */
  @Allow()
  metadata?: Record<string, unknown>;
}
