import {
  type ChangedLane,
  type RenewedLease,
  type Turn,
  type TurnHold,
  type TurnLedger,
  TurnNotFoundError,
  type TurnQuery,
} from 'nestjs-agent-sessions';
import { accept } from './accept.js';
import { cancelParked, type CancelMode, markTurn, putBack, stopTurn } from './change-turn.js';
import { claim } from './claim.js';
import { dueLanes, headOf, held, watch } from './lane.js';
import { controlLane, laneOf, pageOfLanes } from './lane-control.js';
import { removeTurn } from './remove-session.js';
import { settle } from './settle.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { isOpen, ms } from './tables.js';
import { signal, wait } from './waits.js';

export const turnsPort = (store: Store): TurnLedger => ({
  accept: (request) => store.commit(() => accept(store, request)),
  claim: (sessionId, request) => store.commit(() => claim(store, sessionId, request)),
  renew: (hold, leaseMs) => store.commit(() => renew(store, hold, leaseMs)),
  saveStep: (hold, step) => store.commit(() => saveStep(store, held(store, hold).row.turn.id, step)),
  settle: (hold, settlement, next) => store.commit(() => settle(store, hold, settlement, next)),
  retry: (hold, { error, delayMs }) =>
    store.commit(() => {
      const own = held(store, hold);
      const failures = own.row.turn.failures + 1;
      return putBack(store, own, { status: 'queued', failures, error, dueAt: store.time(delayMs) });
    }),
  release: (hold, delayMs) =>
    store.commit(() => putBack(store, held(store, hold), { status: 'queued' }, { offerAt: store.now + delayMs })),
  wait: (hold, request) => store.commit(() => wait(store, hold, request)),
  signal: (turnId, name, payload) => store.commit(() => signal(store, turnId, name, payload)),
  cancel: (turnId, mode) => store.commit(() => cancel(store, turnId, mode)),
  get: (turnId) => store.read(() => store.turns.get(turnId)?.turn ?? null),
  list: (query) => store.read(() => list(store, query)),
  steps: (turnId) => store.read(() => [...store.steps.by('turn', [turnId])].map(({ step }) => step)),
  signals: (turnId) =>
    store.read(() => [...store.signals.by('turn', [turnId])].map(({ name, payload }) => ({ name, payload }))),
  control: (control) => store.commit(() => controlLane(store, control)),
  clear: (sessionId) => store.commit(() => cancelParked(store, sessionId)),
  lane: (sessionId) => store.read(() => laneOf(store, sessionId)),
  lanes: (query) => store.read(() => pageOfLanes(store, query)),
  due: (limit) => store.commit(() => dueLanes(store, limit)),
  purgeSettled: (olderThanMs, limit) => store.commit(() => purgeSettled(store, store.now - olderThanMs, limit)),
});

function renew(store: Store, hold: TurnHold, leaseMs: number): RenewedLease {
  const { lane, row } = held(store, hold);
  watch(store, { ...lane, running: { ...lane.running!, leaseEnd: store.now + leaseMs } });
  const { cancelMode } = row.turn;
  return cancelMode === undefined ? {} : { cancelMode };
}

function cancel(store: Store, turnId: string, mode: CancelMode): ChangedLane {
  const row = store.turns.get(turnId);
  if (!row) throw new TurnNotFoundError(turnId);
  const { sessionId, status } = row.turn;
  if (!isOpen(row.turn)) return { turn: row.turn, ring: false };
  if (status === 'running') return { turn: markTurn(store, row, mode), ring: false };
  const wasHead = headOf(store, sessionId)?.turn.id === turnId;
  const turn = stopTurn(store, row, status === 'waiting' ? mode : 'cancel');
  return { turn, ring: wasHead && watch(store, store.lanes.get(sessionId)!) };
}

function purgeSettled(store: Store, before: number, limit: number): number {
  let removed = 0;
  for (const row of store.turns.by('settled', [])) {
    if (removed >= limit || ms(row.turn.settledAt!) >= before) break;
    removeTurn(store, row);
    removed += 1;
  }
  return removed;
}

/** A page is read from the lane turn by turn, whatever the statuses that are asked for. */
function list(store: Store, { sessionId, status, after = 0, limit = 50 }: TurnQuery): Turn[] {
  const found: Turn[] = [];
  const wanted = status === undefined ? undefined : [status].flat();
  for (const { turn } of store.turns.by('lane', [sessionId], [sessionId, after + 1])) {
    if (found.length >= limit) break;
    if (!wanted || wanted.includes(turn.status)) found.push(turn);
  }
  return found;
}
