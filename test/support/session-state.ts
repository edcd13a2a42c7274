import { type SessionsAdapter, SessionStateService, type StateOptions } from 'nestjs-agent-sessions';
import { ConversationCompaction } from '../../lib/conversation/conversation-compaction.service.js';
import { ConversationCompactor } from '../../lib/conversation/conversation-compactor.service.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { builtInModules, builtInState } from '../../lib/state/built-in-modules.js';
import { StateModules } from '../../lib/state/state-modules.js';
import { stateSettings } from '../../lib/state/state.settings.js';

/** Creates the services of one process, without Nest, on a shared store. */
export function sessionState(adapter: SessionsAdapter, options: StateOptions = {}): SessionStateService {
  const settings = stateSettings(options);
  const builtIn = builtInState(adapter, settings);
  const tokens = new MessageTokens((text) => text.length);
  const compactor = new ConversationCompactor({ adapter, tokens, leaseMs: 10_000, timeoutMs: 10_000, emit: () => {} });
  const compaction = new ConversationCompaction({
    adapter,
    tokens,
    compactor,
    summarizer: () => null,
    orchestrators: () => [],
  });
  const modules = new StateModules(builtInModules(adapter, builtIn, compaction), settings.hookTimeoutMs);
  return new SessionStateService({ stores: adapter, modules, builtIn, redact: settings.redact });
}

/** Returns all items of an async iterable. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
