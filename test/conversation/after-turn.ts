import { type INestApplicationContext } from '@nestjs/common';
import { OrchestratorEvents } from 'nestjs-agent-sessions';
import { ConversationCompactor } from '../../lib/conversation/conversation-compactor.service.js';
import { eventually } from '../support/eventually.js';

/** @returns waits for what a turn leads to beside it: its caller may hear of its end before the process that ran it does */
export function afterTurns(app: INestApplicationContext): (turnId: string) => Promise<void> {
  const settled = new Set<string>();
  app.get(OrchestratorEvents, { strict: false }).on('turn-settled', ({ turnId }) => void settled.add(turnId));
  return async (turnId) => {
    await eventually(() => settled.has(turnId));
    await app.get(ConversationCompactor, { strict: false }).idle();
  };
}
