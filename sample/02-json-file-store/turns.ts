import {
  type ChangedLane,
  type Turn,
  type TurnHold,
  type TurnLedger,
  TurnNotFoundError,
  type TurnQuery,
} from 'nestjs-agent-sessions';
import { accept } from './accept.js';
import { claim } from './claim.js';
import { type CancelMode, changeTurn, headOf, held, isLastAttempt, markTurn, stopTurn, watch } from './lane.js';
import { settle } from './settle.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { isOpen, type TurnRow } from './tables.js';
import { signal, wait } from './waits.js';

export const turnsPort = (store: Store): TurnLedger => ({
  accept: (request) => store.commit(() => accept(store, request)),
  claim: (sessionId, request) => store.commit(() => claim(store, sessionId, request)),
  renew: (hold, leaseMs) =>
    store.commit(() => {
      const { lane, row } = held(store, hold);
      watch(store, { ...lane, running: { ...lane.running!, leaseEnd: store.now + leaseMs } });
      const { cancelMode } = row.turn;
      return cancelMode === undefined ? {} : { cancelMode };
    }),
  saveStep: (hold, step) => store.commit(() => saveStep(store, held(store, hold).row.turn.id, step)),
  settle: (hold, settlement, next) => store.commit(() => settle(store, hold, settlement, next)),
  retry: (hold, { error, delayMs }) =>
    store.commit(() =>
      putBack(store, hold, delayMs, ({ failures }) => ({ dueAt: store.time(delayMs), failures: failures + 1, error })),
    ),
  release: (hold, delayMs) => store.commit(() => putBack(store, hold, delayMs, () => ({}))),
  wait: (hold, request) => store.commit(() => wait(store, hold, request)),
  signal: (turnId, name, payload) => store.commit(() => signal(store, turnId, name, payload)),
  cancel: (turnId, mode) => store.commit(() => cancel(store, turnId, mode)),
  get: (turnId) => store.read(() => store.turns.get(turnId)?.turn ?? null),
  list: (query) => store.read(() => list(store, query)),
  due: (limit) => store.commit(() => due(store, limit)),
});

/** Ends the hold without settling the turn: it is queued again, unless this was its last attempt. */
function putBack(store: Store, hold: TurnHold, delayMs: number, fields: (turn: Turn) => Partial<Turn>): Turn {
  const { lane, row } = held(store, hold);
  const last = isLastAttempt(store, row.turn);
  const turn = last
    ? stopTurn(store, row, row.turn.cancelMode ?? 'cancel')
    : changeTurn(store, row, { status: 'queued', ...fields(row.turn) });
  store.hint(turn.id);
  watch(store, { ...lane, running: undefined }, last ? store.now : store.now + delayMs);
  return turn;
}

export function turnOf(store: Store, turnId: string): TurnRow {
  const row = store.turns.get(turnId);
  if (!row) throw new TurnNotFoundError(turnId);
  return row;
}

function cancel(store: Store, turnId: string, mode: CancelMode): ChangedLane {
  const row = turnOf(store, turnId);
  const { sessionId, status } = row.turn;
  if (!isOpen(row.turn)) return { turn: row.turn, ring: false };
  if (status === 'running') return { turn: markTurn(store, row, mode), ring: false };
  const wasHead = headOf(store, sessionId)?.turn.id === turnId;
  const turn = stopTurn(store, row, mode);
  return { turn, ring: wasHead && watch(store, store.lanes.get(sessionId)!) };
}

/** A page of the lane is read turn by turn until it is full, whatever the statuses that are asked for. */
function list(store: Store, { sessionId, status, after = 0, limit = 50 }: TurnQuery): Turn[] {
  const found: Turn[] = [];
  const wanted = status === undefined ? undefined : [status].flat();
  for (const { turn } of store.turns.by('lane', [sessionId], [sessionId, after + 1])) {
    if (found.length >= limit) break;
    if (!wanted || wanted.includes(turn.status)) found.push(turn);
  }
  return found;
}

function due(store: Store, limit: number): string[] {
  const sessionIds: string[] = [];
  for (const lane of store.lanes.by('attention', [])) {
    if (lane.attentionAt! > store.now || sessionIds.length >= limit) break;
    sessionIds.push(lane.sessionId);
    const attentionAt = store.now + Math.min(1000 * 2 ** lane.offers, 5000);
    store.lanes.put({ ...lane, attentionAt, offers: lane.offers + 1 });
  }
  return sessionIds;
}
