import {
  type JsonValue,
  type SignalledTurn,
  type Turn,
  type TurnHold,
  TurnSettledError,
  type TurnWait,
} from 'nestjs-agent-sessions';
import { changeTurn, held, isLastAttempt, stopTurn, watch } from './lane.js';
import { saveStep } from './steps.js';
import { type Store } from './store.js';
import { isOpen } from './tables.js';
import { turnOf } from './turns.js';

interface Waited {
  readonly turn: Turn;
  readonly received?: { readonly payload: JsonValue };
}

export function wait(store: Store, hold: TurnHold, { signal: name, step, timeoutMs }: TurnWait): Waited {
  const { lane, row } = held(store, hold);
  const { turn } = row;
  const early = store.signals.get(turn.id, name);
  if (early) {
    const { payload } = early;
    saveStep(store, turn.id, { ...step, value: { received: true, payload } });
    return { turn, received: { payload } };
  }
  const free = { ...lane, running: undefined };
  if (isLastAttempt(store, turn)) {
    const stopped = stopTurn(store, row, turn.cancelMode ?? 'cancel');
    watch(store, free, store.now);
    return { turn: stopped };
  }
  const waitingFor = { signal: name, until: timeoutMs === undefined ? undefined : store.time(timeoutMs) };
  const parked = changeTurn(store, row, { status: 'waiting', waitingFor }, { waitStep: step });
  watch(store, free);
  store.hint(turn.id);
  return { turn: parked };
}

export function signal(store: Store, turnId: string, name: string, payload: JsonValue): SignalledTurn {
  const row = turnOf(store, turnId);
  const { turn, waitStep } = row;
  if (store.signals.get(turnId, name)) return { turn, accepted: false, ring: false };
  if (!isOpen(turn)) throw new TurnSettledError(turn);
  store.signals.put({ turnId, name, payload });
  if (turn.waitingFor?.signal !== name) return { turn, accepted: true, ring: false };

  if (waitStep) saveStep(store, turnId, { ...waitStep, value: { received: true, payload } });
  const resumed = changeTurn(store, row, { status: 'queued', waitingFor: undefined });
  store.hint(turnId);
  return { turn: resumed, accepted: true, ring: watch(store, store.lanes.get(turn.sessionId)!) };
}
