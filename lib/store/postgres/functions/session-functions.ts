import { SESSION_CHANGE_FUNCTIONS, SESSION_CHANGE_HELPERS } from './session-change-functions.js';
import { SESSION_CREATE_FUNCTIONS } from './session-create-functions.js';
import { SESSION_RECORD_FUNCTIONS } from './session-record-functions.js';
import { SESSION_REMOVAL_FUNCTIONS } from './session-removal-functions.js';
import { SESSION_SLOT_FUNCTIONS } from './session-slot-functions.js';
import { SESSION_SWEEP_FUNCTIONS, SESSION_SWEEP_HELPERS } from './session-sweep-functions.js';

/** AtomicSessionStoreAdapter. Those of turns and documents come before them. */
export const SESSION_FUNCTIONS: readonly string[] = [
  ...SESSION_RECORD_FUNCTIONS,
  ...SESSION_SLOT_FUNCTIONS,
  ...SESSION_CREATE_FUNCTIONS,
  ...SESSION_CHANGE_HELPERS,
  ...SESSION_CHANGE_FUNCTIONS,
  ...SESSION_REMOVAL_FUNCTIONS,
  ...SESSION_SWEEP_HELPERS,
  ...SESSION_SWEEP_FUNCTIONS,
];
