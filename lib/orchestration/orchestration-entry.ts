import { type Patch } from '../common/patch.js';
import { type OnViolation, type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationProgress, type ToolOutcome } from './orchestration-state.js';
import { UnreadableRecordError } from '../common/sessions.error.js';
import { type TokenCounts } from '../common/token-counts.js';

/**
 * A stored event. It contains what happened, but not the result, so entries of several processes only need an order.
 * `applyEntry` computes the result, which is the same for every reader.
 */
export type OrchestrationEntry =
  | {
      readonly type: 'tool';
      readonly tool: string;
      readonly callId?: string;
      /** The digest of the call's input. */
      readonly input?: string;
      /** Call ids are unique per turn. */
      readonly turnId?: string;
      readonly outcome: ToolOutcome | 'admitted';
      /** The signature of the plan that decides the result. */
      readonly plan?: string;
      /**
       * The plan's conditions that hold and that only the writer could evaluate. If absent, the active step is kept.
       */
      readonly facts?: readonly string[];
      /** The maximum length of `recentlyUsedTools`, from the writer's options. Default 10. */
      readonly recentTools?: number;
      /** The step whose sequence the use belongs to. Replaces `plan`. */
      readonly sequenceOf?: Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;
    }
  /** Records a use that is about to begin, if the plan allows the tool at this point of the order (FIX-21). */
  | {
      readonly type: 'admit';
      readonly tool: string;
      readonly callId: string;
      readonly input?: string;
      /** The turn of the use. Absent outside of turns. */
      readonly turnId?: string;
      readonly plan: string;
      readonly onViolation: OnViolation;
      /** The maximum length of `recentlyUsedTools`, from the writer's options. Default 10. */
      readonly recentTools?: number;
      /** See `facts` of a `tool` entry. */
      readonly facts?: readonly string[];
    }
  /** Completes an admitted use. Has no effect if the use is unknown. */
  | {
      readonly type: 'outcome';
      readonly callId: string;
      readonly outcome: ToolOutcome;
      readonly plan: string;
      readonly facts?: readonly string[];
    }
  /** Evaluates the active step again. */
  | { readonly type: 'evaluate'; readonly plan: string; readonly facts: readonly string[] }
  /** Enters a step. With a plan, the default step is left if no other step was active. */
  | { readonly type: 'step'; readonly step: string | null; readonly plan?: string }
  | {
      readonly type: 'advance';
      readonly plan?: string;
      /** The step whose sequence advances. Replaces `plan`. */
      readonly sequenceOf?: Pick<OrchestrationStep, 'name' | 'sequence'>;
    }
  /** Restarts the sequence of the active step. */
  | { readonly type: 'restart'; readonly plan?: string }
  | {
      readonly type: 'tokens';
      readonly usage: TokenCounts;
      /**
       * The turn that used the tokens. `usage` is then the turn's total so far, and replaces earlier entries of the
       * turn (FIX-15).
       */
      readonly turnId?: string;
    }
  | {
      readonly type: 'merge';
      readonly updates: Patch<OrchestrationProgress>;
      readonly unset: readonly string[];
      /** The maximum length of `recentlyUsedTools`, from the writer's options. Default 10. */
      readonly recentTools?: number;
    };

/** An entry of a turn. `stored`: an earlier {@link TurnEntry} contains it. */
export type TurnPart = OrchestrationEntry & { readonly stored?: true };

/**
 * The entries of a turn that stored some before its settlement (FIX-88). `applyStored` computes the result.
 *
 * - `add`: new entries of the running turn.
 * - `replace`: all entries of the running turn, without those that it dropped.
 * - `restart`: the same, without uses of earlier attempts, unless a use outside of the turn needs them.
 * - `end`: all entries of the turn, which settles. Empty for a turn that failed or was cancelled.
 */
export interface TurnEntry {
  readonly type: 'turn';
  readonly turnId: string;
  /** The fence of the attempt. After an entry with a later fence, the entry has no effect. */
  readonly fence: number;
  readonly mode: 'add' | 'replace' | 'restart' | 'end';
  readonly entries: readonly TurnPart[];
}

/** An entry of a stored document. */
export type StoredEntry = OrchestrationEntry | TurnEntry;

/**
 * The version of the rules of `applyEntry`. They are part of the stored format. A change gets the next number, which
 * new entries store as `rules`; entries keep the rules of their writer (FIX-29). The default is 1.
 */
const RULES = 1;

const TYPES: ReadonlySet<string> = new Set<StoredEntry['type']>([
  'tool',
  'admit',
  'outcome',
  'advance',
  'evaluate',
  'step',
  'restart',
  'tokens',
  'merge',
  'turn',
]);

/** @throws UnreadableRecordError (`NEWER_STATE`) for an entry of a newer version of the package */
export function assertKnownEntry(entry: StoredEntry): void {
  const { type, rules = RULES } = entry as { readonly type: string; readonly rules?: number };
  if (rules > RULES || !TYPES.has(type)) {
    throw new UnreadableRecordError('orchestration entry', type, { rules: { written: rules, known: RULES } });
  }
  if (entry.type === 'turn') entry.entries.forEach(assertKnownEntry);
}

/** The default `recentTools` of entries. Part of the stored format: it must not change with the option's default. */
const RECENT_TOOLS = 10;

export function recentToolsOf(entry: OrchestrationEntry): number {
  return ('recentTools' in entry ? entry.recentTools : undefined) ?? RECENT_TOOLS;
}

/** Adds the writer's options that readers need, so that every process computes the same state (FIX-29). */
export function withOptions<Entry extends StoredEntry>(entry: Entry, recentTools: number): Entry {
  const isLimited = entry.type === 'tool' || entry.type === 'admit' || entry.type === 'merge';
  return isLimited && recentTools !== RECENT_TOOLS && entry.recentTools === undefined
    ? { ...entry, recentTools }
    : entry;
}

/** A result of an entry. */
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
  /** The tool was used although another one was next. The use is recorded, and the sequence does not move. */
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
