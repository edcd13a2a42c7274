import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { CoreCheckpoints } from './checkpoints.js';
import { CoreConversations } from './conversations.js';
import { CoreLeases } from './leases.js';
import { CoreSessions } from './sessions.js';
import { CoreState } from './state.js';
import { type CoreDatabase } from './tables.js';
import { CoreTurnEvents } from './turn-events.js';
import { CoreTurnLedger } from './turns.js';

/** Creates all ports on one database. */
export function corePorts(db: CoreDatabase): Omit<SessionsAdapter, 'shared' | 'ping' | 'init' | 'beginWork' | 'close'> {
  return {
    sessions: new CoreSessions(db),
    turns: new CoreTurnLedger(db),
    changes: { subscribe: (listener) => db.onChanged(listener) },
    events: new CoreTurnEvents(db),
    checkpoints: new CoreCheckpoints(db),
    conversations: new CoreConversations(db),
    state: new CoreState(db),
    leases: new CoreLeases(db),
  };
}
