import { type Summarizer } from '../conversation/compaction-policy.js';
import { type StateRedactor } from './session-state.service.js';
import { STATE_MODULES, type StateModuleName } from './state-module.js';
import { type StateOptions } from './state.options.js';

/** The `state` part of the module's options with every default filled in. */
export interface StateSettings {
  /** In the order in which modules are always named. */
  readonly modules: readonly StateModuleName[];
  readonly redact: StateRedactor | undefined;
  readonly maxBytes: number;
  /** `null`: that of the only orchestrator that has one. */
  readonly summarize: Summarizer | null;
}

export function stateSettings(options: StateOptions): StateSettings {
  const { modules = STATE_MODULES, redact, summarize = null, maxBytes = 262_144 } = options;
  return { modules: STATE_MODULES.filter((name) => modules.includes(name)), redact, summarize, maxBytes };
}
