import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { type Summarizer } from '../conversation/compaction-policy.js';
import { type StateRedactor } from './session-state.service.js';
import { STATE_MODULES, type StateModuleName } from './state-module.js';

/** The enabled state modules, and what descriptions of them show. */
export class StateOptions {
  /**
   * The enabled built-in modules, in any order: `conversation`, `tools`, `task`, `flow`. Without `conversation`, turns
   * do not write or read a message log, and compaction and undo are rejected (FIX-46). Default: all of them.
   */
  @Optional()
  @Must(isModules, `must be a list of ${STATE_MODULES.join(', ')}, each at most once.`)
  modules?: readonly StateModuleName[];

  /** Returns what a description shows instead of an item. Default: the item. */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function that takes an item.')
  redact?: StateRedactor;

  /**
   * Writes summaries requested through the control plane. Default: the summarizer of the only orchestrator with a
   * compaction policy.
   */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function that returns the summary.')
  summarize?: Summarizer;

  /** Maximum size of a tool entry, a flow state or a flow checkpoint as JSON, in bytes. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 16_777_216)
  maxBytes?: number;

  /**
   * Timeout of a hook of a custom state module in milliseconds; for `export`, of each item. After it, the hook fails
   * with StateModuleError and its result is discarded. Default 30,000.
   */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  hookTimeoutMs?: number;
}

function isModules(value: unknown): boolean {
  const known: readonly unknown[] = STATE_MODULES;
  return Array.isArray(value) && value.every((name) => known.includes(name)) && new Set(value).size === value.length;
}
