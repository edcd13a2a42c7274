import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Summarizer } from '../conversation/compaction-policy.js';
import { type StateRedactor } from './session-state.service.js';
import { STATE_MODULES, type StateModuleName } from './state-module.js';
import { stateMessages } from './state.messages.js';
import { type StateOptions } from './state.options.js';

/** The `state` options of the module with all defaults applied. */
export interface StateSettings {
  /** The enabled modules in their fixed order. */
  readonly modules: readonly StateModuleName[];
  /** True if turns read and write the conversation log, which requires the module `conversation` (FIX-46). */
  readonly logsConversations: boolean;
  readonly redact: StateRedactor | undefined;
  readonly maxBytes: number;
  readonly hookTimeoutMs: number;
  /** `null`: the summarizer of the only orchestrator that has one. */
  readonly summarize: Summarizer | null;
}

/** @throws SessionsConfigurationError for a summarizer without conversations */
export function stateSettings(options: StateOptions): StateSettings {
  const { modules = STATE_MODULES, redact, summarize = null, maxBytes = 262_144, hookTimeoutMs = 30_000 } = options;
  if (summarize) assertConversation(modules, 'SessionsModule: The option state.summarize');
  return {
    logsConversations: modules.includes('conversation'),
    modules: STATE_MODULES.filter((name) => modules.includes(name)),
    redact,
    summarize,
    maxBytes,
    hookTimeoutMs,
  };
}

/**
 * @param option the option that needs the conversation log
 * @throws SessionsConfigurationError if the module `conversation` is not enabled (FIX-46)
 */
export function assertConversation(modules: readonly string[], option: string): void {
  if (modules.includes('conversation')) return;
  throw new SessionsConfigurationError(stateMessages.conversationDisabled(option, modules));
}
