import { type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationProgress, type ToolOutcome } from './orchestration-state.js';
import { type TokenUsage } from '../common/token-usage.js';

/**
 * One thing that happened, as it is stored: it says what, and not what follows from it, so that entries of several
 * processes need only an order. What follows is decided by `applyEntry`, the same for every reader.
 */
export type OrchestrationEntry =
  | {
      readonly type: 'tool';
      readonly tool: string;
      readonly callId?: string;
      /** Call ids are told apart by it. */
      readonly turnId?: string;
      readonly outcome: ToolOutcome;
      /** The signature of the plan that decides what follows. */
      readonly plan?: string;
      /** What holds of that plan's conditions that only the writer could answer. Left out: the active step stays. */
      readonly facts?: readonly string[];
      /** Instead of a plan: the step whose sequence the use is of. */
      readonly sequenceOf?: Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;
    }
  /** The active step is looked for anew. */
  | { readonly type: 'evaluate'; readonly plan: string; readonly facts: readonly string[] }
  /** With a plan the default step is left, when no other one was active. */
  | { readonly type: 'step'; readonly step: string | null; readonly plan?: string }
  | { readonly type: 'advance'; readonly plan?: string }
  /** The sequence of the active step starts over. */
  | { readonly type: 'restart'; readonly plan?: string }
  | { readonly type: 'tokens'; readonly usage: TokenUsage }
  | { readonly type: 'merge'; readonly updates: Partial<OrchestrationProgress>; readonly unset: readonly string[] };

/** What followed from an entry. */
export type OrchestrationEffect =
  | {
      readonly type: 'tool-recorded';
      readonly tool: string;
      readonly outcome: ToolOutcome;
      readonly step?: string;
      readonly callId?: string;
      readonly turnId?: string;
    }
  | { readonly type: 'sequence-advanced'; readonly step?: string; readonly index: number }
  | { readonly type: 'sequence-completed'; readonly step?: string }
  /** The tool was used though another one was next: it is recorded, and the sequence stays where it is. */
  | {
      readonly type: 'tool-violated';
      readonly tool: string;
      readonly step: string;
      readonly allowed: readonly string[];
    }
  | { readonly type: 'step-changed'; readonly from?: string; readonly to?: string };
