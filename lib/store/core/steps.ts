import { type JsonValue } from '../../common/json.js';
import { stepIdOf, type StepKey, stepText, type StoredStep, type WaitResult } from '../../ledger/turn-step.js';
import { type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/** Stores a step of a turn unless it is stored already. @returns the value that is stored */
export function storeStep(tx: Transaction, turnId: string, step: StoredStep): JsonValue {
  const stepKey = stepText(step);
  const id = stepIdOf(stepKey);
  const stored = tx.steps.get({ turnId, id });
  if (stored) return JSON.parse(stored.value) as JsonValue;
  tx.steps.insert({ turnId, id, stepKey, value: JSON.stringify(step.value) });
  return step.value;
}

/** Stores what a waiting turn waited for, as the step that it named. */
export function storeWaitResult(tx: Transaction, turn: TurnRow, result: WaitResult): void {
  if (turn.waitStep === null) return;
  storeStep(tx, turn.id, { ...(JSON.parse(turn.waitStep) as StepKey), value: result });
}
