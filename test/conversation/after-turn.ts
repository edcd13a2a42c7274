import { type INestApplicationContext } from '@nestjs/common';
import { OrchestratorEvents } from 'nestjs-agent-sessions';
import { ConversationCompactor } from '../../lib/conversation/conversation-compactor.service.js';
import { eventually } from '../support/eventually.js';

/** @returns a function that waits until a turn has settled in this process and its compaction has ended; callers may be notified earlier */
export function afterTurns(app: INestApplicationContext): (turnId: string) => Promise<void> {
  const settled = new Set<string>();
  app.get(OrchestratorEvents, { strict: false }).on('turn-settled', ({ turnId }) => void settled.add(turnId));
  return async (turnId) => {
    await eventually(() => settled.has(turnId));
    await app.get(ConversationCompactor, { strict: false }).idle();
  };
}
