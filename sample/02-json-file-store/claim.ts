import { type ClaimedTurn, type ClaimNotice, type ClaimRequest, type Turn } from 'nestjs-agent-sessions';
import { changeTurn, endTurn, isLastAttempt, stopTurn } from './change-turn.js';
import { latestCheckpoint } from './checkpoints.js';
import { windowOf } from './conversations.js';
import { documentAt } from './document-rows.js';
import { headOf, isDue, watch } from './lane.js';
import { isPaused } from './lane-control.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { type LaneRow, type TurnRow } from './tables.js';

/** From so many losses on, a turn may be what ends its process: only claims that ask for such turns get it. */
const SUSPECT_FROM_LOST = 2;

/** Checks the head, and the next one when that has ended, until one can be given or must wait. */
export function claim(
  store: Store,
  sessionId: string,
  request: ClaimRequest,
  notices: ClaimNotice[] = [],
): ClaimedTurn | null {
  for (;;) {
    const lane = store.lanes.get(sessionId);
    const row = headOf(store, sessionId);
    if (!lane || !row) return null;
    const { turn, waitStep } = row;
    if (turn.status !== 'running') {
      if (!isDue(store, turn) || isPaused(store, lane)) return null;
      if (turn.lost >= SUSPECT_FROM_LOST && !request.suspects) {
        notices.push({ type: 'suspect' });
        return null;
      }
      if (waitStep) saveStep(store, turn.id, { ...waitStep, value: { received: false } });
      return give(store, lane, row, request);
    }
    if (lane.running && lane.running.leaseEnd > store.now) {
      return lane.running.holder === request.holder ? answer(store, lane, turn, request) : null;
    }
    if (isPaused(store, lane)) return null;
    if (isLastAttempt(store, turn)) stopTurn(store, row, turn.cancelMode ?? 'cancel');
    else {
      const lost = turn.lost + 1;
      const holder = lane.running?.holder ?? '';
      if (lost < Math.min(request.maxLost, SUSPECT_FROM_LOST)) {
        const claimed = give(store, lane, row, request, lost);
        notices.push({ type: 'lost', turn: claimed.turn, holder });
        return claimed;
      }
      notices.push({ type: 'lost', turn: afterLoss(store, row, request, lost), holder });
    }
    watch(store, { ...lane, running: undefined });
  }
}

/** Ends a turn that was lost too often, or queues it for an attempt after a pause. */
function afterLoss(store: Store, row: TurnRow, request: ClaimRequest, lost: number): Turn {
  if (lost >= request.maxLost) {
    const message = `The worker of turn ${row.turn.id} was lost ${lost} times.`;
    const error = { name: 'WorkerLostError', code: 'WORKER_LOST', message };
    return endTurn(store, row, { status: 'failed', lost, error });
  }
  const { lossPauseMs = 0, maxLossPauseMs = lossPauseMs } = request;
  const pauseMs = Math.min(lossPauseMs * 2 ** (lost - SUSPECT_FROM_LOST), maxLossPauseMs);
  return changeTurn(store, row, { status: 'queued', lost, dueAt: store.time(pauseMs) });
}

function give(store: Store, lane: LaneRow, row: TurnRow, request: ClaimRequest, lost = row.turn.lost): ClaimedTurn {
  const startedAt = row.turn.startedAt ?? store.time();
  const fields = { status: 'running', startedAt, lost, dueAt: undefined, waitingFor: undefined } as const;
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
