import { type JsonValue } from '../../common/json.js';
import { stepIdOf, type StepKey, stepText, type StoredStep, type WaitResult } from '../../ledger/turn-step.js';
import { TurnSettledError } from '../../ledger/turn.errors.js';
import { isTerminal, type Turn } from '../../ledger/turn.js';
import { type SignalledTurn, type TurnHold, type TurnWait } from '../../ledger/turn.store.js';
import { held, restLane } from './lane.js';
import { toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { putBack } from './stop-turn.js';
import { type Transaction } from './tables.js';

/** Implements TurnLedger.wait. The turn waits for a signal, or takes one that arrived early. */
export function waitTurn(
  tx: Transaction,
  hold: TurnHold,
  { signal, step, others = [], timeoutMs, spending }: TurnWait,
): { turn: Turn; received?: { payload: JsonValue } } {
  const { turn } = held(tx, hold);
  const early = tx.signals.get({ turnId: turn.id, name: signal });
  if (early) {
    const payload = JSON.parse(early.payload) as JsonValue;
    storeStep(tx, turn, { ...step, value: { received: true, payload } });
    return { turn: toTurn(turn), received: { payload } };
  }
  const waiting = {
    status: 'waiting',
    waitSignal: signal,
    waitStep: JSON.stringify(step),
    waitOthers: others.length > 0 ? JSON.stringify(others) : null,
    waitUntil: timeoutMs === undefined ? null : tx.now + timeoutMs,
  } as const;
  const awaiting = putBack(tx, hold, () => waiting, spending);
  return { turn: toTurn(awaiting) };
}

/** Implements TurnLedger.signal. Only the first payload of a name counts. A turn that waits for it resumes. */
export function signalTurn(tx: Transaction, turn: TurnRow, name: string, payload: JsonValue): SignalledTurn {
  const key = { turnId: turn.id, name };
  if (tx.signals.get(key)) return { turn: toTurn(turn), accepted: false, notify: false };
  if (isTerminal(turn.status)) throw new TurnSettledError(toTurn(turn));
  tx.signals.insert({ ...key, payload: JSON.stringify(payload) });
  if (turn.status !== 'waiting' || turn.waitSignal !== name)
    return { turn: toTurn(turn), accepted: true, notify: false };

  storeWaitResult(tx, turn, { received: true, payload });
  const resumed: Partial<TurnRow> = { status: 'queued', waitSignal: null, waitStep: null, waitUntil: null };
  tx.turns.update(turn.id, resumed);
  tx.changed(turn.id);
  const depth = tx.lanes.get(turn.sessionId)?.depth ?? 0;
  return { turn: toTurn({ ...turn, ...resumed }), accepted: true, notify: restLane(tx, turn.sessionId, depth) };
}

/** Stores a step of a turn, unless it exists. A new step is progress (FIX-62). @returns the stored value */
export function storeStep(tx: Transaction, turn: TurnRow, step: StoredStep): JsonValue {
  const turnId = turn.id;
  const stepKey = stepText(step);
  const id = stepIdOf(stepKey);
  const stored = tx.steps.get({ turnId, id });
  if (stored) return JSON.parse(stored.value) as JsonValue;
  tx.steps.insert({ turnId, id, stepKey, value: JSON.stringify(step.value) });
  if (turn.lostSinceStep > 0) tx.turns.update(turnId, { lostSinceStep: 0 });
  return step.value;
}

/** Stores the result of a wait as the step that the turn named. */
export function storeWaitResult(tx: Transaction, turn: TurnRow, result: WaitResult): void {
  if (turn.waitStep === null) return;
  storeStep(tx, turn, { ...(JSON.parse(turn.waitStep) as StepKey), value: result });
}
