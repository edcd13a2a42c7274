import { type StoredStep } from 'nestjs-agent-sessions';
import { type Store } from './store.js';

/** Stores the step unless there is one. @returns the stored one */
export function saveStep(store: Store, turnId: string, step: StoredStep): StoredStep {
  const { iteration, intent, name, occurrence } = step;
  const row = store.steps.get(turnId, iteration, intent, name, occurrence) ?? store.steps.put({ turnId, step });
  return row.step;
}
