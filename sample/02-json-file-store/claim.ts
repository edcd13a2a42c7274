import { type ClaimedTurn, type ClaimRequest, type Turn } from 'nestjs-agent-sessions';
import { changeTurn, endTurn, isLastAttempt, stopTurn } from './change-turn.js';
import { latestCheckpoint } from './checkpoints.js';
import { windowOf } from './conversations.js';
import { documentAt } from './document-rows.js';
import { headOf, isDue, watch } from './lane.js';
import { isPaused } from './lane-control.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { type LaneRow, type TurnRow } from './tables.js';

/** Looks at the head, and at the next one when that came to its end, until it can be given or must wait. */
export function claim(store: Store, sessionId: string, request: ClaimRequest): ClaimedTurn | null {
  for (;;) {
    const lane = store.lanes.get(sessionId);
    const row = headOf(store, sessionId);
    if (!lane || !row) return null;
    const { turn, waitStep } = row;
    if (turn.status !== 'running') {
      if (!isDue(store, turn) || isPaused(store, lane)) return null;
      if (waitStep) saveStep(store, turn.id, { ...waitStep, value: { received: false } });
      return give(store, lane, row, request);
    }
    if (lane.running && lane.running.leaseEnd > store.now) {
      return lane.running.holder === request.holder ? answer(store, lane, turn, request) : null;
    }
    if (isPaused(store, lane)) return null;
    const failures = turn.failures + 1;
    if (!isLastAttempt(store, turn) && failures < request.maxAttempts) {
      return give(store, lane, row, request, failures);
    }
    endLapsed(store, row, failures);
    watch(store, { ...lane, running: undefined });
  }
}

function endLapsed(store: Store, row: TurnRow, failures: number): void {
  const { turn } = row;
  if (isLastAttempt(store, turn)) stopTurn(store, row, turn.cancelMode ?? 'cancel');
  else {
    const message = `The lease of turn ${turn.id} lapsed.`;
    const error = turn.error ?? { name: 'WorkerLostError', code: 'WORKER_LOST', message };
    endTurn(store, row, { status: 'failed', failures, error });
  }
}

function give(
  store: Store,
  lane: LaneRow,
  row: TurnRow,
  request: ClaimRequest,
  failures = row.turn.failures,
): ClaimedTurn {
  const startedAt = row.turn.startedAt ?? store.time();
  const fields = { status: 'running', startedAt, failures, dueAt: undefined, waitingFor: undefined } as const;
  const begun = row.turn.startedAt === undefined ? { ...row, epochs: lane.epochs } : row;
  const turn = changeTurn(store, begun, fields);
  const running = { turnId: turn.id, holder: request.holder, leaseEnd: store.now + request.leaseMs };
  const given = { ...lane, fence: lane.fence + 1, running, offers: 0 };
  watch(store, given);
  return answer(store, given, turn, request);
}

function answer(
  store: Store,
  { sessionId, fence, epochs = {} }: LaneRow,
  turn: Turn,
  { windows, documents = {} }: ClaimRequest,
): ClaimedTurn {
  const { id: turnId, orchestrator } = turn;
  const names = Object.hasOwn(documents, orchestrator) ? documents[orchestrator] : [];
  return {
    hold: { sessionId, turnId, fence },
    turn,
    session: store.sessions.get(sessionId) ?? null,
    checkpoint: latestCheckpoint(store, orchestrator, sessionId) ?? null,
    history: windowOf(store, sessionId, Object.hasOwn(windows, orchestrator) ? windows[orchestrator] : 0),
    steps: [...store.steps.by('turn', [turnId])].map(({ step }) => step),
    documents: names.map((name) => documentAt(store, { ...name, sessionId }) ?? null),
    epochs,
  };
}
