import { SessionDriver } from './session-driver.js';
import { SessionModel } from './session-model.js';
import { sessionActions, type SessionOperation } from './session-operation.js';
import { type Specimen } from './specimen.js';

/** The sessions of a user (AtomicSessionStoreAdapter), except `insert` and `update`, which write any data. */
export const SESSIONS: Specimen<SessionOperation, SessionOperation> = {
  actions: sessionActions,

  reads: [
    { type: 'find', surface: null, state: null },
    { type: 'find', surface: 'web', state: null },
    { type: 'count', surface: null, state: 'active' },
  ],

  alone: true,

  model: (durations) => new SessionModel(durations),

  open: (context) => SessionDriver.open(context),
};
