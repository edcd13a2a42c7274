/** One item of a step's tool sequence: a tool, one of several tools, or an optional tool. */
export type SequenceItem = string | { readonly anyOf: readonly string[] } | { readonly optional: string };

/** A condition for a step to become active. */
export type OrchestrationCondition =
  /** The tool is in `recentlyUsedTools`. */
  | { readonly type: 'tool_used'; readonly value: string }
  /** The last uses match the step's whole sequence, in order. Failed uses are ignored. */
  | { readonly type: 'sequence_match' }
  /** The tool was the last one that did not fail. */
  | { readonly type: 'last_tool'; readonly value: string }
  /** The tool was used at least `count` times within the tool history, without failing. */
  | { readonly type: 'tool_count'; readonly value: string; readonly count: number }
  /** The tool failed at least `count` times within the tool history. Default 1. */
  | { readonly type: 'tool_failed'; readonly value: string; readonly count?: number }
  /**
   * The user's message matches the regular expression `value`. Evaluated when a turn begins: later in the turn, no
   * condition on the message activates another step. RE2's syntax, in linear time: no lookaround, no backreferences.
   * Only the first 4 KiB of the message are read. Flags: any of `imsu`; `u` has no effect.
   */
  | { readonly type: 'message_matches'; readonly value: string; readonly flags?: string }
  /** `cumulativeTokenUsage.totalTokens` is greater than `value`. */
  | { readonly type: 'tokens_over'; readonly value: number }
  | { readonly type: 'any_of'; readonly conditions: readonly OrchestrationCondition[] }
  | { readonly type: 'not'; readonly condition: OrchestrationCondition }
  /** The provider with `@StepPredicate(value)` returns true. */
  | { readonly type: 'predicate'; readonly value: string };

/** The types of conditions. */
export type ConditionType = OrchestrationCondition['type'];

/** A step of an agent's plan. */
export interface OrchestrationStep {
  readonly name: string;
  /** A description for developers and prompts. */
  readonly description?: string;
  /**
   * Makes the step active until another one becomes active. At most one step may have it; its own conditions are
   * ignored.
   */
  readonly isDefault?: boolean;
  /**
   * Conditions that must all hold for the step to become active. The first matching step of the plan is used. Without
   * conditions, the step is entered only by name.
   */
  readonly conditions?: readonly OrchestrationCondition[];
  /**
   * Names of tools. A `*` at the beginning, at the end or at both matches any characters. With both lists, denied tools
   * are removed from the allowed ones. Default: all tools.
   */
  readonly availableTools?: { readonly allowed?: readonly string[]; readonly denied?: readonly string[] };
  /**
   * Tools in the order in which they must be used. Each item counts, so `[search, search, book]` requires two searches.
   */
  readonly sequence?: readonly SequenceItem[];
  /**
   * The step to enter when the sequence is finished. The sequence restarts when its step is entered again. The next
   * tool use enters it again while the step's own conditions hold. Use conditions that end, such as `last_tool`, or
   * conditions on the message, which activate a step only when a turn begins.
   */
  readonly onComplete?: string;
  /** Tools whose use restarts the sequence. They may be used at any time. */
  readonly resetSequenceOn?: readonly string[];
}

/** How a tool is handled that the plan does not allow: reject it, log it, or restart the sequence and check again. */
export type OnViolation = 'reject' | 'warn' | 'reset';

/** The orchestration of an agent. */
export interface OrchestrationConfig {
  /** The steps. Default: none; the agent may use all of its tools, and nothing is stored. */
  readonly steps?: readonly OrchestrationStep[];
  /** How a tool is handled that the plan does not allow. Default `reject`. */
  readonly onViolation?: OnViolation;
  /** The maximum number of tokens per session. Default: no limit. */
  readonly tokenBudget?: number;
}
