import { type ClaimedTurn, type ClaimNotice, type ClaimRequest } from '../../ledger/turn.store.js';
import { isLostTooOften, SUSPECT_FROM_LOST } from '../../ledger/turn.js';
import { type WaitResult } from '../../ledger/turn-step.js';
import { readWindow } from './conversations.js';
import { expectDocuments, readDocuments } from './documents.js';
import { epochsOf } from './epochs.js';
import { endTurn, isDue, isLapsed, restLane } from './lane.js';
import { isPaused } from './lane-control.js';
import { toCheckpoint, toSession, toStep, toTurn } from './row-mapping.js';
import { type LaneRow, type TurnRow } from './rows.js';
import { storeWaitResult } from './wait-turn.js';
import { endBeforeNextAttempt, stopTurn } from './stop-turn.js';
import { type Transaction } from './tables.js';

/**
 * Implements TurnLedger.claim. Claims the head of the lane if it is due and no worker holds it with a live lease.
 * @param notices receives the other events of the claim
 */
export function claimTurn(
  tx: Transaction,
  sessionId: string,
  request: ClaimRequest,
  notices: ClaimNotice[] = [],
): ClaimedTurn | null {
  const lane = tx.lanes.get(sessionId);
  const head = lane && lane.depth > 0 ? tx.turns.head(sessionId) : undefined;
  return lane && head ? claimHead(tx, lane, head, request, notices) : null;
}

/** Claims the head of the lane, or the next turn if the head ends instead. */
export function claimHead(
  tx: Transaction,
  lane: LaneRow,
  head: TurnRow,
  request: ClaimRequest,
  notices: ClaimNotice[] = [],
): ClaimedTurn | null {
  if (head.status === 'running') {
    if (!isLapsed(lane, tx.now)) return repeatClaim(tx, head, request);
  } else if (!isDue(head, tx.now)) {
    return null;
  }
  if (isPaused(tx, lane)) return null;
  if (head.status === 'running') return takeOver(tx, lane, head, request, notices);
  if (head.lost >= SUSPECT_FROM_LOST && !request.suspects) {
    notices.push({ type: 'suspect' });
    return null;
  }
  if (head.status === 'waiting') {
    const timedOut: WaitResult = { received: false };
    storeWaitResult(tx, head, timedOut);
  }
  return startAttempt(tx, lane, head, request);
}

/** Returns the same answer to a repeated claim while it holds the turn, otherwise null. */
export function repeatClaim(tx: Transaction, turn: TurnRow, request: ClaimRequest): ClaimedTurn | null {
  const lane = tx.lanes.get(turn.sessionId);
  const isHeld = lane?.runningTurn === turn.id && lane.holder === request.holder && !isLapsed(lane, tx.now);
  return isHeld ? toClaimed(tx, lane, turn, request) : null;
}

/** Takes over a lane whose worker was lost. The head runs again, waits for its next attempt, or ends. */
function takeOver(
  tx: Transaction,
  lane: LaneRow,
  head: TurnRow,
  request: ClaimRequest,
  notices: ClaimNotice[],
): ClaimedTurn | null {
  const mode = endBeforeNextAttempt(tx, head);
  const left = mode === null ? countLoss(tx, head, request) : stopTurn(tx, head, mode);
  const claimed = left.status === 'running' ? startAttempt(tx, lane, left, request) : null;
  if (mode === null) {
    const { lostSinceStep } = left;
    notices.push({ type: 'lost', turn: claimed?.turn ?? toTurn(left), lostSinceStep, holder: lane.holder ?? '' });
  }
  if (claimed) return claimed;
  restLane(tx, lane.sessionId, left.status === 'queued' ? lane.depth : lane.depth - 1);
  return claimTurn(tx, lane.sessionId, request, notices);
}

/** Counts a lost attempt. The turn stays running to run again immediately, is queued after a pause, or ends. */
function countLoss(tx: Transaction, head: TurnRow, { maxLost, ...pause }: ClaimRequest): TurnRow {
  const lost = head.lost + 1;
  const lostSinceStep = head.lostSinceStep + 1;
  const turn = { ...head, lost, lostSinceStep };
  tx.turns.update(turn.id, { lost, lostSinceStep });
  if (isLostTooOften(turn, maxLost)) {
    const message = `The process that ran the turn was lost ${lost} times, ${lostSinceStep} of them since its last step.`;
    const error = JSON.stringify({ name: 'WorkerLostError', code: 'WORKER_LOST', message });
    return endTurn(tx, turn, 'failed', { error });
  }
  if (lost < SUSPECT_FROM_LOST) return turn;
  const { lossPauseMs = 0, maxLossPauseMs = lossPauseMs } = pause;
  const pauseMs = Math.min(lossPauseMs * 2 ** (lost - SUSPECT_FROM_LOST), maxLossPauseMs);
  const queued = { status: 'queued', dueAt: tx.now + pauseMs } as const;
  tx.turns.update(turn.id, queued);
  tx.changed(turn.id);
  return { ...turn, ...queued };
}

/** Gives the head to the claim: it runs with the next fence. */
function startAttempt(tx: Transaction, lane: LaneRow, head: TurnRow, request: ClaimRequest): ClaimedTurn {
  const running: Partial<TurnRow> = {
    status: 'running',
    startedAt: head.startedAt ?? tx.now,
    ...(head.startedAt === null ? { epochs: lane.epochs } : {}),
    dueAt: null,
    waitSignal: null,
    waitStep: null,
    waitUntil: null,
  };
  const leaseUntil = tx.now + request.leaseMs;
  const held: Partial<LaneRow> = {
    // At least the clock, so that a recreated lane, or a store that lost its last seconds, never repeats a fence.
    fence: Math.max(lane.fence + 1, tx.now),
    runningTurn: head.id,
    holder: request.holder,
    leaseUntil,
    attentionAt: leaseUntil,
    offers: 0,
  };
  tx.turns.update(head.id, running);
  tx.lanes.update(lane.sessionId, held);
  return toClaimed(tx, { ...lane, ...held }, { ...head, ...running }, request);
}

function toClaimed(
  tx: Transaction,
  lane: LaneRow,
  turn: TurnRow,
  { windows, documents = {} }: ClaimRequest,
): ClaimedTurn {
  const { sessionId } = turn;
  const session = tx.sessions.get(sessionId);
  const checkpoint = tx.checkpoints.latest(turn.orchestrator, sessionId);
  // Object.hasOwn, because the orchestrator's name is data and may be `constructor`.
  const window = Object.hasOwn(windows, turn.orchestrator) ? windows[turn.orchestrator] : 0;
  const names = Object.hasOwn(documents, turn.orchestrator) ? documents[turn.orchestrator] : [];
  expectDocuments(tx, sessionId, names);
  return {
    hold: { sessionId, turnId: turn.id, fence: lane.fence },
    turn: toTurn(turn),
    session: session ? toSession(session) : null,
    checkpoint: checkpoint ? toCheckpoint(checkpoint) : null,
    history: readWindow(tx, sessionId, window),
    steps: tx.steps.ofTurn(turn.id).map(toStep),
    documents: readDocuments(tx, sessionId, names),
    epochs: epochsOf(lane),
  };
}
