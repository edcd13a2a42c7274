import {
  type ChangedLane,
  type ClaimNotice,
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
import { BEFORE_OTHERS, dueLanes, headOf, held, watch } from './lane.js';
import { controlLane, laneOf, pageOfLanes } from './lane-control.js';
import { removeTurn } from './remove-session.js';
import { settle } from './settle.js';
import { recordSpending } from './spending.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { isOpen, ms } from './tables.js';
import { signal, wait } from './waits.js';

export const turnsPort = (store: Store): TurnLedger => ({
  accept: (request) => store.commit(() => accept(store, request)),
  claim: async (sessionId, request) => {
    const notices: ClaimNotice[] = [];
    const claimed = await store.commit(() => claim(store, sessionId, request, notices));
    for (const notice of notices) request.onNotice?.(notice);
    return claimed;
  },
  renew: (hold, leaseMs) => store.commit(() => renew(store, hold, leaseMs)),
  saveStep: (hold, step, before, spending) =>
    store.commit(() => {
      const { id } = recordSpending(store, held(store, hold), spending).row.turn;
      if (before) saveStep(store, id, before);
      return saveStep(store, id, step);
    }),
  settle: (hold, settlement, next) => store.commit(() => settle(store, hold, settlement, next)),
  retry: (hold, { error, delayMs, spending }) =>
    store.commit(() => {
      const own = recordSpending(store, held(store, hold), spending);
      const failures = own.row.turn.failures + 1;
      return putBack(store, own, { status: 'queued', failures, error, dueAt: store.time(delayMs) });
    }),
  release: (hold, delayMs, spending) =>
    store.commit(() => {
      const own = recordSpending(store, held(store, hold), spending);
      const offerAt = delayMs === 0 ? BEFORE_OTHERS : store.now + delayMs;
      return putBack(store, own, { status: 'queued' }, { offerAt });
    }),
  wait: (hold, request) => store.commit(() => wait(store, hold, request)),
  saveAwaited: (hold, turns) =>
    store.commit(() => {
      const { lane } = held(store, hold);
      store.lanes.put({ ...lane, awaited: { fence: hold.fence, turns } });
    }),
  awaited: (sessionId) =>
    store.read(() => {
      const lane = store.lanes.get(sessionId);
      return lane?.running && lane.awaited?.fence === lane.fence ? lane.awaited.turns : [];
    }),
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
  due: (limit, includeOffered) => store.commit(() => dueLanes(store, limit, includeOffered)),
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
function list(store: Store, { sessionId, status, order = 'asc', after, limit = 50 }: TurnQuery): Turn[] {
  if (order === 'desc') return latest(store, { sessionId, status, after, limit });
  const found: Turn[] = [];
  for (const { turn } of store.turns.by('lane', [sessionId], [sessionId, (after ?? 0) + 1])) {
    if (found.length >= limit) break;
    if (isWanted(turn, status)) found.push(turn);
  }
  return found;
}

/** Reads the whole lane: its index has one direction. */
function latest(store: Store, { sessionId, status, after = Infinity, limit }: TurnQuery): Turn[] {
  const lane = [...store.turns.by('lane', [sessionId])].map(({ turn }) => turn);
  const wanted = lane.filter((turn) => turn.position < after && isWanted(turn, status));
  return wanted.reverse().slice(0, limit);
}

function isWanted(turn: Turn, status: TurnQuery['status']): boolean {
  return status === undefined || [status].flat().includes(turn.status);
}
