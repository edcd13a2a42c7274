import { type SessionChange } from '../../ledger/session.js';
import { asSwept, touched } from '../../ledger/session.lifecycle.js';
import { StateResetError } from '../../ledger/state-reset.error.js';
import { writtenNamespaces } from '../../ledger/namespaces.js';
import {
  type ClaimRequest,
  type SettledTurn,
  type TurnFailure,
  type TurnHold,
  type TurnSettlement,
} from '../../ledger/turn.store.js';
import { type Turn } from '../../ledger/turn.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { appendCheckpoint } from './checkpoints.js';
import { claimTurn } from './claim-turn.js';
import { appendMessages } from './conversations.js';
import { applyStateChanges } from './documents.js';
import { resetSince } from './epochs.js';
import { BEFORE_OTHERS, endTurn, hasFreeHead, held, restLane } from './lane.js';
import { iso } from './iso.js';
import { toSession, toSessionRow, toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { putBack } from './stop-turn.js';
import { type Transaction } from './tables.js';

/** Implements TurnLedger.settle. Writes all changes of the turn, updates the head of the lane, and claims the next turn. */
export function settleTurn(
  tx: Transaction,
  hold: TurnHold,
  settlement: TurnSettlement,
  next?: ClaimRequest,
): SettledTurn {
  const { sessionId, turnId, fence } = hold;
  const known = tx.turns.get(turnId);
  // A repeat: the first settle was committed, and only its answer was lost.
  if (known?.settledFence === fence) return handOver(tx, known, next, true);

  const { lane, turn } = held(tx, hold, known);
  const { status, reply, error, report, usage, checkpoint, sessionTtlMs, stateChanges = [] } = settlement;
  const reset = resetSince(lane, turn, writtenNamespaces(settlement));
  if (reset.length > 0) throw new StateResetError(sessionId, reset);
  const author = { turnId, orchestrator: turn.orchestrator };
  if (checkpoint) appendCheckpoint(tx, checkpoint, settlement.keepCheckpoints);
  appendMessages(tx, sessionId, settlement.messages, author);
  applyStateChanges(tx, sessionId, stateChanges);
  const succeeded = status === 'awaiting-input' || status === 'completed';
  const sessionChange = succeeded ? touchSession(tx, sessionId, sessionTtlMs) : undefined;
  const ended = endTurn(tx, turn, status, {
    settledFence: fence,
    turnIndex: checkpoint?.turnIndex ?? null,
    reply: reply === undefined ? null : JSON.stringify(reply),
    error: error === undefined ? null : JSON.stringify(error),
    report: report === undefined ? null : JSON.stringify(report),
    spent: usage === undefined ? turn.spent : JSON.stringify(usage),
    failures: status === 'failed' ? turn.failures + 1 : turn.failures,
  });
  const handedOver = handOver(tx, ended, next, restLane(tx, sessionId, lane.depth - 1));
  return sessionChange ? { ...handedOver, sessionChange } : handedOver;
}

/** Implements TurnLedger.retry. The turn returns to the head of its lane, which waits for it. */
export function retryTurn(tx: Transaction, hold: TurnHold, { error, delayMs, spending }: TurnFailure): Turn {
  const change = ({ failures }: TurnRow): Partial<TurnRow> => ({
    status: 'queued',
    failures: failures + 1,
    error: JSON.stringify(error),
    dueAt: tx.now + delayMs,
  });
  const turn = putBack(tx, hold, change, spending);
  return toTurn(turn);
}

/** Implements TurnLedger.release. The turn returns to the head of its lane, as if it had not been claimed. */
export function releaseTurn(tx: Transaction, hold: TurnHold, delayMs: number, spending?: TurnSpending): Turn {
  const turn = putBack(tx, hold, () => ({ status: 'queued' }), spending);
  // Sets only when the lane is next due. A worker may claim the turn earlier.
  const attentionAt = delayMs === 0 ? BEFORE_OTHERS : tx.now + delayMs;
  if (turn.status === 'queued') tx.lanes.update(hold.sessionId, { attentionAt });
  return toTurn(turn);
}

function handOver(
  tx: Transaction,
  settled: TurnRow,
  next: ClaimRequest | undefined,
  mayHaveMore: boolean,
): SettledTurn {
  const { sessionId } = settled;
  const claimed = next && mayHaveMore ? claimTurn(tx, sessionId, next) : null;
  return { turn: toTurn(settled), next: claimed, notify: mayHaveMore && !claimed && hasFreeHead(tx, sessionId) };
}

/** Records activity, unless the session has ended: a late settle does not revive it. */
function touchSession(tx: Transaction, sessionId: string, ttlMs?: number): SessionChange | undefined {
  const row = tx.sessions.get(sessionId);
  if (!row || row.state === 'expired') return undefined;
  const now = iso(tx.now);
  const before = asSwept(toSession(row), now, ttlMs);
  const session = touched(before, now);
  const { state, lastActivityAt, stateChangedAt, version } = toSessionRow(session);
  // Omits unchanged columns, to avoid updates of their indexes.
  const moved = state === before.state ? {} : { state, stateChangedAt };
  tx.sessions.update(sessionId, { ...moved, lastActivityAt, version });
  return { session, previousState: before.state, changed: session.version !== row.version };
}
