import {
  type JsonValue,
  type SignalledTurn,
  type Turn,
  type TurnHold,
  TurnNotFoundError,
  TurnSettledError,
  type TurnWait,
} from 'nestjs-agent-sessions';
import { changeTurn, putBack } from './change-turn.js';
import { held, watch } from './lane.js';
import { recordSpending } from './spending.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { isOpen } from './tables.js';

interface Waited {
  readonly turn: Turn;
  readonly received?: { readonly payload: JsonValue };
}

export function wait(store: Store, hold: TurnHold, { signal: name, step, timeoutMs, spending }: TurnWait): Waited {
  const own = held(store, hold);
  const early = store.signals.get(hold.turnId, name);
  if (early) {
    const { payload } = early;
    saveStep(store, hold.turnId, { ...step, value: { received: true, payload } });
    return { turn: own.row.turn, received: { payload } };
  }
  const waitingFor = { signal: name, until: timeoutMs === undefined ? undefined : store.time(timeoutMs) };
  const parked = recordSpending(store, own, spending);
  return { turn: putBack(store, parked, { status: 'waiting', waitingFor }, { waitStep: step }) };
}

export function signal(store: Store, turnId: string, name: string, payload: JsonValue): SignalledTurn {
  const row = store.turns.get(turnId);
  if (!row) throw new TurnNotFoundError(turnId);
  const { turn, waitStep } = row;
  if (store.signals.get(turnId, name)) return { turn, accepted: false, ring: false };
  if (!isOpen(turn)) throw new TurnSettledError(turn);
  store.signals.put({ turnId, name, payload });
  if (!waitStep || turn.waitingFor?.signal !== name) return { turn, accepted: true, ring: false };

  saveStep(store, turnId, { ...waitStep, value: { received: true, payload } });
  const resumed = changeTurn(store, row, { status: 'queued', waitingFor: undefined });
  return { turn: resumed, accepted: true, ring: watch(store, store.lanes.get(turn.sessionId)!) };
}
