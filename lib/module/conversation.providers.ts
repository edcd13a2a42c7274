import { type Provider } from '@nestjs/common';
import { provide } from '../common/nest-providers.js';
import { ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { MessageTokens } from '../conversation/message-tokens.js';
import { compactionTeller, onlySummarizer } from '../orchestrator/compaction-parts.js';
import { OrchestratorEvents } from '../orchestrator/orchestrator-events.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';
import { OBSERVED_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';

/** Milliseconds that a summary may take where turns have no limit. */
const SUMMARY_TIMEOUT_MS = 900_000;

/** What counts and compacts messages, by the policies of the registered orchestrators. */
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
  return new ConversationCompactor({ adapter, tokens, leaseMs, timeoutMs, emit: compactionTeller(registry, events) });
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
