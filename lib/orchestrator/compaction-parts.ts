import { Logger } from '@nestjs/common';
import { type CompactionEvent } from '../conversation/compaction-events.js';
import { type RequestedSummarizer } from '../conversation/conversation-compaction.service.js';
import { type OrchestratorEvent, type OrchestratorEvents, tellListeners } from './orchestrator-events.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';

/** Who writes the summaries that the control plane is asked for, where the application has not said. */
export function onlySummarizer(registry: OrchestratorRegistry): RequestedSummarizer | null {
  const [first, ...others] = registry.compacting();
  if (!first?.compaction || others.length > 0) return null;
  return { orchestrator: first.name, summarize: first.compaction.summarize };
}

/** Tells the orchestrators of this process what compaction does. */
export function compactionTeller(
  registry: OrchestratorRegistry,
  events: OrchestratorEvents,
): (event: CompactionEvent) => void {
  const logger = new Logger('ConversationCompactor');
  return (event) => {
    const listener = registry.get(event.orchestrator)?.on[event.type];
    tellListeners(logger, event, [listener as ((event: OrchestratorEvent) => unknown) | undefined]);
    events.emit(event);
  };
}
