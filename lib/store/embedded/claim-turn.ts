import { type ClaimedTurn, type ClaimRequest } from '../../turn/turn.store.js';
import { type WaitResult } from '../../turn/turn-step.js';
import { readWindow } from './conversations.js';
import { expectDocuments, readDocuments } from './documents.js';
import { epochsOf } from './epochs.js';
import { endTurn, isDue, isLapsed, restLane } from './lane.js';
import { isPaused } from './lane-control.js';
import { toCheckpoint, toSession, toStep, toTurn } from './row-mapping.js';
import { type LaneRow, type TurnRow } from './rows.js';
import { storeWaitResult } from './steps.js';
import { endBeforeNextAttempt, stopTurn } from './stop-turn.js';
import { type Transaction } from './tables.js';

/** TurnLedger.claim: the head of the lane when it is due and nobody holds it with a live lease. */
export function claimTurn(tx: Transaction, sessionId: string, request: ClaimRequest): ClaimedTurn | null {
  const lane = tx.lanes.get(sessionId);
  const head = lane && lane.depth > 0 ? tx.turns.head(sessionId) : undefined;
  return lane && head ? claimHead(tx, lane, head, request) : null;
}

/** The head of the lane or, when that ends instead, the one behind it. */
export function claimHead(tx: Transaction, lane: LaneRow, head: TurnRow, request: ClaimRequest): ClaimedTurn | null {
  if (head.status === 'running') {
    if (!isLapsed(lane, tx.now)) return repeatClaim(tx, head, request);
  } else if (!isDue(head, tx.now)) {
    return null;
  }
  if (isPaused(tx, lane)) return null;
  const ready = makeReady(tx, head, request);
  if (ready) return give(tx, lane, ready, request);
  restLane(tx, lane.sessionId, lane.depth - 1);
  return claimTurn(tx, lane.sessionId, request);
}

/** The same claim sent twice gets the same answer, for as long as it holds the turn; null: it is not the same or does not. */
export function repeatClaim(tx: Transaction, turn: TurnRow, request: ClaimRequest): ClaimedTurn | null {
  const lane = tx.lanes.get(turn.sessionId);
  const isHeld = lane?.runningTurn === turn.id && lane.holder === request.holder && !isLapsed(lane, tx.now);
  return isHeld ? answer(tx, lane, turn, request) : null;
}

/** The turn as it may run now, or null when it ended instead. */
function makeReady(tx: Transaction, head: TurnRow, request: ClaimRequest): TurnRow | null {
  if (head.status === 'running') return afterLapse(tx, head, request);
  if (head.status === 'waiting') {
    const timedOut: WaitResult = { received: false };
    storeWaitResult(tx, head, timedOut);
  }
  return head;
}

/** A turn whose worker was lost: it gets another attempt unless it was to end anyway, or lapsed too often. */
function afterLapse(tx: Transaction, head: TurnRow, { maxAttempts }: ClaimRequest): TurnRow | null {
  const mode = endBeforeNextAttempt(tx, head);
  if (mode !== null) {
    stopTurn(tx, head, mode);
    return null;
  }
  const failures = head.failures + 1;
  if (failures < maxAttempts) return { ...head, failures };
  const error = JSON.stringify({
    name: 'WorkerLostError',
    code: 'WORKER_LOST',
    message: `The worker that ran the turn was lost; the turn was attempted ${failures} times.`,
  });
  // What the attempt before said is the better answer to why.
  endTurn(tx, head, 'failed', { failures, error: head.error ?? error });
  return null;
}

function give(tx: Transaction, lane: LaneRow, head: TurnRow, request: ClaimRequest): ClaimedTurn {
  const running: Partial<TurnRow> = {
    status: 'running',
    failures: head.failures,
    startedAt: head.startedAt ?? tx.now,
    ...(head.startedAt === null ? { epochs: lane.epochs } : {}),
    dueAt: null,
    waitSignal: null,
    waitStep: null,
    waitUntil: null,
  };
  const leaseUntil = tx.now + request.leaseMs;
  const held: Partial<LaneRow> = {
    // At least the clock: neither a lane made anew nor a store without its last seconds gives a fence twice.
    fence: Math.max(lane.fence + 1, tx.now),
    runningTurn: head.id,
    holder: request.holder,
    leaseUntil,
    attentionAt: leaseUntil,
    offers: 0,
  };
  tx.turns.update(head.id, running);
  tx.lanes.update(lane.sessionId, held);
  return answer(tx, { ...lane, ...held }, { ...head, ...running }, request);
}

function answer(tx: Transaction, lane: LaneRow, turn: TurnRow, { windows, documents = {} }: ClaimRequest): ClaimedTurn {
  const { sessionId } = turn;
  const session = tx.sessions.get(sessionId);
  const checkpoint = tx.checkpoints.latest(turn.orchestrator, sessionId);
  // Object.hasOwn: the orchestrator's name is data.
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
