import { Logger } from '@nestjs/common';
import { type CompactorParts } from '../conversation/conversation-compactor.service.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type OrchestratorEvent, type OrchestratorEvents, tellListeners } from './orchestrator-events.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';

/** What compaction tells the orchestrators of this process: its events, and what its summaries took. */
export function compactionOf(
  registry: OrchestratorRegistry,
  events: OrchestratorEvents,
  agents: OrchestrationAgents,
): Pick<CompactorParts, 'emit' | 'addUsage'> {
  const logger = new Logger('ConversationCompactor');
  return {
    emit: (event) => {
      const listener = registry.get(event.orchestrator)?.on[event.type];
      tellListeners(logger, event, [listener as ((event: OrchestratorEvent) => unknown) | undefined]);
      events.emit(event);
    },
    addUsage: async (orchestrator, sessionId, usage) => {
      const plan = registry.get(orchestrator)?.plan;
      if (!plan) return;
      await agents.get(plan.agent).append(sessionId, [{ type: 'tokens', usage }], { create: true });
    },
  };
}
