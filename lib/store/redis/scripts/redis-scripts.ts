import * as content from './content-operations.js';
import * as document from './document-operations.js';
import * as laneControl from './lane-control.js';
import * as lease from './lease-operations.js';
import { type Script } from './script.js';
import * as sessionChange from './session-change.js';
import * as sessionCreate from './session-create.js';
import * as sessionFind from './session-find.js';
import { DELETE_SESSION, ERASE_SESSION } from './session-removal.js';
import { EXPIRE_STALE, PURGE_EXPIRED, SUSPEND_STALE } from './session-sweep.js';
import { RESET_STATE } from './state-reset.js';
import { ACCEPT } from './turn-accept.js';
import * as turnEvent from './turn-event-operations.js';
import * as turnChange from './turn-change.js';
import { CLAIM } from './turn-claim.js';
import * as turnHold from './turn-hold.js';
import { SETTLE } from './turn-settle.js';

/** Every script, so that they are there before they are called. */
export const SCRIPTS: readonly Script[] = [
  ACCEPT,
  CLAIM,
  SETTLE,
  DELETE_SESSION,
  ERASE_SESSION,
  EXPIRE_STALE,
  PURGE_EXPIRED,
  RESET_STATE,
  SUSPEND_STALE,
  ...[
    content,
    document,
    laneControl,
    lease,
    sessionChange,
    sessionCreate,
    sessionFind,
    turnChange,
    turnEvent,
    turnHold,
  ].flatMap((scripts) => Object.values<Script>(scripts)),
];
