import { LANE_CALL_FUNCTIONS } from './lane-call-functions.js';
import { LANE_CONTROL_FUNCTIONS } from './lane-control-functions.js';
import { TURN_ACCEPT_FUNCTIONS } from './turn-accept-functions.js';
import { TURN_CLAIM_FUNCTIONS } from './turn-claim-functions.js';
import { TURN_DUE_FUNCTIONS } from './turn-due-functions.js';
import { TURN_EVENT_FUNCTIONS } from './turn-event-functions.js';
import { TURN_HOLD_FUNCTIONS } from './turn-hold-functions.js';
import { TURN_PURGE_FUNCTIONS } from './turn-purge-functions.js';
import { TURN_SETTLE_FUNCTIONS } from './turn-settle-functions.js';
import { TURN_SIGNAL_FUNCTIONS } from './turn-signal-functions.js';
import { TURN_STOP_FUNCTIONS } from './turn-stop-functions.js';

/** The turn ledger, in the order in which it can be created. */
export const TURN_FUNCTIONS: readonly string[] = [
  ...TURN_STOP_FUNCTIONS,
  ...LANE_CONTROL_FUNCTIONS,
  ...TURN_ACCEPT_FUNCTIONS,
  ...TURN_CLAIM_FUNCTIONS,
  ...TURN_SETTLE_FUNCTIONS,
  ...TURN_HOLD_FUNCTIONS,
  ...TURN_EVENT_FUNCTIONS,
  ...TURN_SIGNAL_FUNCTIONS,
  ...TURN_DUE_FUNCTIONS,
  ...TURN_PURGE_FUNCTIONS,
  ...LANE_CALL_FUNCTIONS,
];
