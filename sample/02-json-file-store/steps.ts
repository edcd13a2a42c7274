import { type StoredStep } from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { stepPlace } from './tables.js';

/** Stores the step unless there is one. @returns the stored one */
export function saveStep(store: Store, turnId: string, step: StoredStep): StoredStep {
  return (store.steps.get(...stepPlace(turnId, step)) ?? store.steps.put({ turnId, step })).step;
}
