import { Logger } from '@nestjs/common';
import { type SessionsAdapter } from '../../sessions.adapter.js';
import { EmbeddedCheckpoints } from './checkpoints.js';
import { EmbeddedConversations } from './conversations.js';
import { EmbeddedLeases } from './leases.js';
import { EmbeddedSessions } from './sessions.js';
import { EmbeddedState } from './state.js';
import { type EmbeddedDatabase } from './tables.js';
import { EmbeddedTurnLedger } from './turns.js';

const logger = new Logger('AgentSessions');

/** Every port over one embedded database. */
export function embeddedPorts(
  db: EmbeddedDatabase,
): Pick<SessionsAdapter, 'sessions' | 'turns' | 'hints' | 'checkpoints' | 'conversations' | 'state' | 'leases'> {
  return {
    sessions: new EmbeddedSessions(db),
    turns: new EmbeddedTurnLedger(db),
    hints: { subscribe: (listener) => db.onChanged(harmless(listener)) },
    checkpoints: new EmbeddedCheckpoints(db),
    conversations: new EmbeddedConversations(db),
    state: new EmbeddedState(db),
    leases: new EmbeddedLeases(db),
  };
}

/** What a hint tells of is committed: a listener that throws must not make its writer believe otherwise. */
function harmless(listener: (turnId: string) => void): (turnId: string) => void {
  return (turnId) => {
    try {
      listener(turnId);
    } catch (error) {
      logger.error('A listener of turn hints threw.', error instanceof Error ? error.stack : String(error));
    }
  };
}
