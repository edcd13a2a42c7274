import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { EmbeddedCheckpoints } from './checkpoints.js';
import { EmbeddedConversations } from './conversations.js';
import { EmbeddedLeases } from './leases.js';
import { EmbeddedSessions } from './sessions.js';
import { EmbeddedState } from './state.js';
import { type EmbeddedDatabase } from './tables.js';
import { EmbeddedTurnEvents } from './turn-events.js';
import { EmbeddedTurnLedger } from './turns.js';

/** Every port over one embedded database. */
export function embeddedPorts(
  db: EmbeddedDatabase,
): Omit<SessionsAdapter, 'shared' | 'ping' | 'init' | 'beginWork' | 'close'> {
  return {
    sessions: new EmbeddedSessions(db),
    turns: new EmbeddedTurnLedger(db),
    hints: { subscribe: (listener) => db.onChanged(listener) },
    events: new EmbeddedTurnEvents(db),
    checkpoints: new EmbeddedCheckpoints(db),
    conversations: new EmbeddedConversations(db),
    state: new EmbeddedState(db),
    leases: new EmbeddedLeases(db),
  };
}
