import { COMMON_FUNCTIONS } from './common-functions.js';
import { CONTENT_FUNCTIONS } from './content-functions.js';
import { DOCUMENT_FUNCTIONS } from './document-functions.js';
import { LEASE_FUNCTIONS } from './lease-functions.js';
import { SESSION_FUNCTIONS } from './session-functions.js';
import { STATE_RESET_FUNCTIONS } from './state-reset-functions.js';
import { TURN_FUNCTIONS } from './turn-functions.js';

/** Every function, in the order in which they can be created. */
export const POSTGRES_FUNCTIONS: readonly string[] = [
  ...COMMON_FUNCTIONS,
  ...TURN_FUNCTIONS,
  ...SESSION_FUNCTIONS,
  ...CONTENT_FUNCTIONS,
  ...DOCUMENT_FUNCTIONS,
  ...STATE_RESET_FUNCTIONS,
  ...LEASE_FUNCTIONS,
];
