/** One item of a step's tool sequence: a tool, one of several, or one that may be left out. */
export type SequenceItem = string | { readonly anyOf: readonly string[] } | { readonly optional: string };

/** What must hold for a step to become the active one. */
export type OrchestrationCondition =
  /** The tool is in `recentlyUsedTools`. */
  | { readonly type: 'tool_used'; readonly value: string }
  /** The last uses are the step's whole sequence, in order; those that failed are left out. */
  | { readonly type: 'sequence_match' }
  /** It was the last tool that did not fail. */
  | { readonly type: 'last_tool'; readonly value: string }
  /** It was used at least `count` times within the tool history, without failing. */
  | { readonly type: 'tool_count'; readonly value: string; readonly count: number }
  /** It failed at least `count` times within the tool history. Default 1. */
  | { readonly type: 'tool_failed'; readonly value: string; readonly count?: number }
  /**
   * The user's message matches the regular expression `value`. Evaluated when a turn begins: later in the turn no condition on
   * the message leads to another step. RE2's syntax, in linear time: no lookaround, no backreferences. The first 4 KiB of the
   * message count. Flags: any of `imsu`; `u` changes nothing.
   */
  | { readonly type: 'message_matches'; readonly value: string; readonly flags?: string }
  /** `cumulativeTokenUsage.totalTokens` is more than `value`. */
  | { readonly type: 'tokens_over'; readonly value: number }
  | { readonly type: 'any_of'; readonly conditions: readonly OrchestrationCondition[] }
  | { readonly type: 'not'; readonly condition: OrchestrationCondition }
  /** A provider with `@StepPredicate(value)` says so. */
  | { readonly type: 'predicate'; readonly value: string };

/** What a condition may ask for. */
export type ConditionType = OrchestrationCondition['type'];

/** A step of an agent's plan. */
export interface OrchestrationStep {
  readonly name: string;
  /** For people and prompts. */
  readonly description?: string;
  /** The active step while no other one was. At most one; its own conditions are ignored. */
  readonly isDefault?: boolean;
  /** All must hold for the step to become active; the first such step of the plan does. None: it is entered by name only. */
  readonly conditions?: readonly OrchestrationCondition[];
  /**
   * Names of tools, with a `*` at the beginning, at the end or at both for any characters. Both: allowed without denied.
   * Neither: all tools.
   */
  readonly availableTools?: { readonly allowed?: readonly string[]; readonly denied?: readonly string[] };
  /** Tools in the order in which they must be used; by position, so `[search, search, book]` needs two searches. */
  readonly sequence?: readonly SequenceItem[];
  /**
   * The step to go to when the sequence is finished. The sequence begins again when the step is entered again, which the next
   * use of a tool does as long as the step's own conditions hold: name conditions that end, such as `last_tool`, or conditions on
   * the message, which lead to a step only when a turn begins.
   */
  readonly onComplete?: string;
  /** Tools whose use starts the sequence over. They may be used at any time. */
  readonly resetSequenceOn?: readonly string[];
}

/** What to do about a tool that the plan does not allow: refuse it, log it, or start the sequence over and look again. */
export type OnViolation = 'reject' | 'warn' | 'reset';

/** The orchestration of an agent. */
export interface OrchestrationConfig {
  /** Left out: the agent may use all of its tools, and nothing is stored. */
  readonly steps?: readonly OrchestrationStep[];
  /** What comes of a tool that the plan does not allow. Default `reject`. */
  readonly onViolation?: OnViolation;
  /** Tokens that a session may take in all. Default: no limit. */
  readonly tokenBudget?: number;
}
