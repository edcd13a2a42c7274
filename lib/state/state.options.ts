import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { type Summarizer } from '../conversation/compaction-policy.js';
import { type StateRedactor } from './session-state.service.js';
import { STATE_MODULES, type StateModuleName } from './state-module.js';

/** Which state modules there are, and what of them is shown. */
export class StateOptions {
  /**
   * Those of the package that are enabled, in any order: `conversation`, `tools`, `task`, `flow`. Without `conversation` turns write and
   * read no message log, and compaction and undo are refused (FIX-46). Default: all of them.
   */
  @Optional()
  @Must(isModules, `must be a list of ${STATE_MODULES.join(', ')}, each at most once.`)
  modules?: readonly StateModuleName[];

  /** What a description shows of an item instead of it. Default: the item. */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function of an item.')
  redact?: StateRedactor;

  /**
   * Writes the summaries that the control plane is asked for. Default: the summarizer of the only orchestrator that has a
   * compaction policy.
   */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function that returns the summary.')
  summarize?: Summarizer;

  /** Bytes that an entry of a tool, a flow state or a checkpoint of a flow may take as JSON. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 16_777_216)
  maxBytes?: number;

  /**
   * Milliseconds that a hook of a state module of the application may take, for an `export` each item. Then it fails with
   * StateModuleTimeoutError and its result is dropped. Default 30,000.
   */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  hookTimeoutMs?: number;
}

function isModules(value: unknown): boolean {
  const known: readonly unknown[] = STATE_MODULES;
  return Array.isArray(value) && value.every((name) => known.includes(name)) && new Set(value).size === value.length;
}
