import { type JsonValue } from '../../common/json.js';
import { TurnSettledError } from '../../ledger/turn.errors.js';
import { type SignalledTurn, type TurnHold, type TurnWait } from '../../ledger/turn.store.js';
import { isTerminal, type Turn } from '../../ledger/turn.js';
import { held, restLane } from './lane.js';
import { toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { storeStep, storeWaitResult } from './steps.js';
import { putBack } from './stop-turn.js';
import { type Transaction } from './tables.js';

/** TurnLedger.wait: parks the turn; a signal that came early is taken at once. */
export function waitTurn(
  tx: Transaction,
  hold: TurnHold,
  { signal, step, timeoutMs, spending }: TurnWait,
): { turn: Turn; received?: { payload: JsonValue } } {
  const { turn } = held(tx, hold);
  const early = tx.signals.get({ turnId: turn.id, name: signal });
  if (early) {
    const payload = JSON.parse(early.payload) as JsonValue;
    storeStep(tx, turn.id, { ...step, value: { received: true, payload } });
    return { turn: toTurn(turn), received: { payload } };
  }
  const waiting = {
    status: 'waiting',
    waitSignal: signal,
    waitStep: JSON.stringify(step),
    waitUntil: timeoutMs === undefined ? null : tx.now + timeoutMs,
  } as const;
  const parked = putBack(tx, hold, () => waiting, spending);
  return { turn: toTurn(parked) };
}

/** TurnLedger.signal: the first payload of a name counts; a turn that waits for it goes on. */
export function signalTurn(tx: Transaction, turn: TurnRow, name: string, payload: JsonValue): SignalledTurn {
  const key = { turnId: turn.id, name };
  if (tx.signals.get(key)) return { turn: toTurn(turn), accepted: false, ring: false };
  if (isTerminal(turn.status)) throw new TurnSettledError(toTurn(turn));
  tx.signals.insert({ ...key, payload: JSON.stringify(payload) });
  if (turn.status !== 'waiting' || turn.waitSignal !== name) return { turn: toTurn(turn), accepted: true, ring: false };

  storeWaitResult(tx, turn, { received: true, payload });
  const resumed: Partial<TurnRow> = { status: 'queued', waitSignal: null, waitStep: null, waitUntil: null };
  tx.turns.update(turn.id, resumed);
  tx.changed(turn.id);
  const depth = tx.lanes.get(turn.sessionId)?.depth ?? 0;
  return { turn: toTurn({ ...turn, ...resumed }), accepted: true, ring: restLane(tx, turn.sessionId, depth) };
}
