import { type Migration } from '../sql/migrations.js';
import common from './migrations/0001-create-sessions/common.sql.js';
import content from './migrations/0001-create-sessions/content.sql.js';
import document from './migrations/0001-create-sessions/document.sql.js';
import laneCall from './migrations/0001-create-sessions/lane-call.sql.js';
import laneControl from './migrations/0001-create-sessions/lane-control.sql.js';
import lease from './migrations/0001-create-sessions/lease.sql.js';
import sessionChange from './migrations/0001-create-sessions/session-change.sql.js';
import sessionCreate from './migrations/0001-create-sessions/session-create.sql.js';
import sessionRecord from './migrations/0001-create-sessions/session-record.sql.js';
import sessionRemoval from './migrations/0001-create-sessions/session-removal.sql.js';
import sessionSlot from './migrations/0001-create-sessions/session-slot.sql.js';
import sessionSweep from './migrations/0001-create-sessions/session-sweep.sql.js';
import stateReset from './migrations/0001-create-sessions/state-reset.sql.js';
import tables from './migrations/0001-create-sessions/tables.sql.js';
import turnAccept from './migrations/0001-create-sessions/turn-accept.sql.js';
import turnClaim from './migrations/0001-create-sessions/turn-claim.sql.js';
import turnDue from './migrations/0001-create-sessions/turn-due.sql.js';
import turnEvent from './migrations/0001-create-sessions/turn-event.sql.js';
import turnHold from './migrations/0001-create-sessions/turn-hold.sql.js';
import turnPurge from './migrations/0001-create-sessions/turn-purge.sql.js';
import turnSettle from './migrations/0001-create-sessions/turn-settle.sql.js';
import turnSignal from './migrations/0001-create-sessions/turn-signal.sql.js';
import turnStop from './migrations/0001-create-sessions/turn-stop.sql.js';

export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  {
    name: 'CreateSessions1763683200000',
    usableFrom: 1,
    // In an order in which PostgreSQL can create the functions.
    up: [
      tables,
      common,
      turnStop,
      laneControl,
      turnAccept,
      turnClaim,
      turnSettle,
      turnHold,
      turnEvent,
      turnSignal,
      turnDue,
      turnPurge,
      laneCall,
      sessionRecord,
      sessionSlot,
      sessionCreate,
      sessionChange,
      sessionRemoval,
      sessionSweep,
      content,
      document,
      stateReset,
      lease,
    ],
  },
];
