import { type OnViolation, type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationProgress, type ToolOutcome } from './orchestration-state.js';
import { NewerStateError } from './orchestration.errors.js';
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
      /** Digest of the call's input. */
      readonly input?: string;
      /** Call ids are told apart by it. */
      readonly turnId?: string;
      readonly outcome: ToolOutcome | 'admitted';
      /** The signature of the plan that decides what follows. */
      readonly plan?: string;
      /** What holds of that plan's conditions that only the writer could answer. Left out: the active step stays. */
      readonly facts?: readonly string[];
      /** How many tools `recentlyUsedTools` remembers then, by the writer's options. Absent: 10. */
      readonly recentTools?: number;
      /** Instead of a plan: the step whose sequence the use is of. */
      readonly sequenceOf?: Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;
    }
  /** Records a use that is about to begin, if the plan allows the tool at this point of the order (FIX-21). */
  | {
      readonly type: 'admit';
      readonly tool: string;
      readonly callId: string;
      readonly input?: string;
      readonly plan: string;
      readonly onViolation: OnViolation;
      /** How many tools `recentlyUsedTools` remembers then, by the writer's options. Absent: 10. */
      readonly recentTools?: number;
      /** The same as those of a `tool` entry. */
      readonly facts?: readonly string[];
    }
  /** Completes an admitted use. Without effect if the use is unknown. */
  | {
      readonly type: 'outcome';
      readonly callId: string;
      readonly outcome: ToolOutcome;
      readonly plan: string;
      readonly facts?: readonly string[];
    }
  /** The active step is looked for anew. */
  | { readonly type: 'evaluate'; readonly plan: string; readonly facts: readonly string[] }
  /** With a plan the default step is left, when no other one was active. */
  | { readonly type: 'step'; readonly step: string | null; readonly plan?: string }
  | {
      readonly type: 'advance';
      readonly plan?: string;
      /** Instead of a plan: the step whose sequence advances. */
      readonly sequenceOf?: Pick<OrchestrationStep, 'name' | 'sequence'>;
    }
  /** The sequence of the active step starts over. */
  | { readonly type: 'restart'; readonly plan?: string }
  | {
      readonly type: 'tokens';
      readonly usage: TokenUsage;
      /** All that this turn took so far: what earlier entries of the turn said is replaced (FIX-15). */
      readonly turnId?: string;
    }
  | {
      readonly type: 'merge';
      readonly updates: Partial<OrchestrationProgress>;
      readonly unset: readonly string[];
      /** How many tools `recentlyUsedTools` remembers then, by the writer's options. Absent: 10. */
      readonly recentTools?: number;
    };

/**
 * What follows from entries, by `applyEntry`. Part of the stored format: a change of it gets the next number, which its entries store as
 * `rules`, and entries keep the rules of their writer (FIX-29). Without a number they have 1.
 */
const RULES = 1;

const TYPES: ReadonlySet<string> = new Set<OrchestrationEntry['type']>([
  'tool',
  'admit',
  'outcome',
  'advance',
  'evaluate',
  'step',
  'restart',
  'tokens',
  'merge',
]);

/** @throws NewerStateError for an entry of a newer version of the package */
export function assertKnownEntry({ type, rules = RULES }: { readonly type: string; readonly rules?: number }): void {
  if (rules > RULES || !TYPES.has(type)) throw new NewerStateError(type, rules, RULES);
}

/** The `recentTools` of entries that have none. Part of the stored format: it stays when the option's default changes. */
const RECENT_TOOLS = 10;

export function recentToolsOf(entry: OrchestrationEntry): number {
  return ('recentTools' in entry ? entry.recentTools : undefined) ?? RECENT_TOOLS;
}

/** The entry with the writer's options that readers need: every process reads a state alike (FIX-29). */
export function withOptions<Entry extends OrchestrationEntry>(entry: Entry, recentTools: number): Entry {
  const isLimited = entry.type === 'tool' || entry.type === 'admit' || entry.type === 'merge';
  return isLimited && recentTools !== RECENT_TOOLS && entry.recentTools === undefined
    ? { ...entry, recentTools }
    : entry;
}

/** What followed from an entry. */
export type OrchestrationEffect =
  | {
      readonly type: 'tool-recorded';
      readonly tool: string;
      readonly outcome: ToolOutcome | 'admitted';
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

export interface Decision {
  readonly progress: OrchestrationProgress;
  readonly effects: readonly OrchestrationEffect[];
}
