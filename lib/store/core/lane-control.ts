import { SessionNotFoundError } from '../../ledger/session.errors.js';
import { LaneDrainingError } from '../../ledger/turn.errors.js';
import { type LaneControl } from '../../ledger/turn.store.js';
import { ALL_LANES, assertNotErased, isLapsed, makeLane, modeOfAll, restLane } from './lane.js';
import { type LaneRow } from './rows.js';
import { type Transaction } from './tables.js';

/** @throws LaneDrainingError */
export function assertTakesTurns(tx: Transaction, lane: LaneRow): void {
  if (lane.mode === 'draining' || modeOfAll(tx) === 'draining') throw new LaneDrainingError(lane.sessionId);
}

/** Returns whether the lane is paused. A lane with its own pause is not offered until it is opened. */
export function isPaused(tx: Transaction, lane: LaneRow): boolean {
  if (lane.mode !== 'paused') return modeOfAll(tx) === 'paused';
  if (lane.attentionAt !== null) tx.lanes.update(lane.sessionId, { attentionAt: null });
  return true;
}

/** Implements TurnLedger.control. @returns whether to notify workers */
export function controlLane(tx: Transaction, { sessionId, mode, foreignSession }: LaneControl): boolean {
  if (sessionId !== null) assertSessionExists(tx, sessionId, foreignSession);
  const lane = tx.lanes.get(sessionId ?? ALL_LANES) ?? makeLane(tx, sessionId ?? ALL_LANES);
  tx.lanes.update(lane.sessionId, { mode: mode === 'open' ? null : mode });
  return mode !== 'paused' && lane.depth > 0 && offerAgain(tx, lane);
}

function assertSessionExists(tx: Transaction, sessionId: string, foreignSession = false): void {
  assertNotErased(tx, sessionId);
  if (!foreignSession && !tx.sessions.get(sessionId)) throw new SessionNotFoundError(sessionId);
}

/** Recomputes when the lane is next due, because a rejected claim removed it from the due lanes. */
function offerAgain(tx: Transaction, lane: LaneRow): boolean {
  if (lane.runningTurn === null) return restLane(tx, lane.sessionId, lane.depth);
  tx.lanes.update(lane.sessionId, { attentionAt: lane.leaseUntil });
  return isLapsed(lane, tx.now);
}
