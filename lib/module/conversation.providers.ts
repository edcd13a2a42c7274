import { type Provider, Logger } from '@nestjs/common';
import { provide } from '../common/nest-providers.js';
import { OBSERVED_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { type CompactionEvent } from '../conversation/compaction-events.js';
import { ConversationCompaction, type RequestedSummarizer } from '../conversation/conversation-compaction.service.js';
import { ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { MessageTokens } from '../conversation/message-tokens.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { OrchestratorEvents, type OrchestratorEvent, notifyListeners } from '../orchestrator/orchestrator-events.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { type SessionsSettings } from './sessions.settings.js';

/** The timeout of a summary in milliseconds, if `turns.timeoutMs` is `false`. */
const SUMMARY_TIMEOUT_MS = 900_000;

/** The services that count and compact messages, by the policies of the registered orchestrators. */
export const CONVERSATION_PROVIDERS: Provider[] = [
  provide(MessageTokens, [SESSIONS_SETTINGS], ({ tokenCounter }: SessionsSettings) => new MessageTokens(tokenCounter)),
  provide(
    ConversationCompactor,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, MessageTokens, OrchestratorRegistry, OrchestratorEvents],
    compactorOf,
  ),
  provide(
    ConversationCompaction,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, MessageTokens, ConversationCompactor, OrchestratorRegistry],
    compactionOf,
  ),
];

function compactorOf(
  adapter: SessionsAdapter,
  { turns: { leaseMs, timeoutMs = SUMMARY_TIMEOUT_MS } }: SessionsSettings,
  tokens: MessageTokens,
  registry: OrchestratorRegistry,
  events: OrchestratorEvents,
): ConversationCompactor {
  return new ConversationCompactor({ adapter, tokens, leaseMs, timeoutMs, emit: compactionReporter(registry, events) });
}

function compactionOf(
  adapter: SessionsAdapter,
  { state: { summarize } }: SessionsSettings,
  tokens: MessageTokens,
  compactor: ConversationCompactor,
  registry: OrchestratorRegistry,
): ConversationCompaction {
  return new ConversationCompaction({
    adapter,
    tokens,
    compactor,
    summarizer: () => (summarize ? { orchestrator: null, summarize } : onlySummarizer(registry)),
    orchestrators: () => registry.names(),
  });
}

/** Returns the default summarizer for requests to the control plane: that of the only orchestrator with a policy. */
export function onlySummarizer(registry: OrchestratorRegistry): RequestedSummarizer | null {
  const [first, ...others] = registry.compacting();
  if (!first?.compaction || others.length > 0) return null;
  return { orchestrator: first.name, summarize: first.compaction.summarize };
}

/** Returns a function that reports compactions to the orchestrators of this process. */
export function compactionReporter(
  registry: OrchestratorRegistry,
  events: OrchestratorEvents,
): (event: CompactionEvent) => void {
  const logger = new Logger('ConversationCompactor');
  return (event) => {
    const listener = registry.get(event.orchestrator)?.on[event.type];
    notifyListeners(logger, event, [listener as ((event: OrchestratorEvent) => unknown) | undefined]);
    events.emit(event);
  };
}
