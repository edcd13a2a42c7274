import {
  addUsage,
  combineUsage,
  tokensOf,
  type TokenCounts,
  type TokenCountsInput,
  toTokenCounts,
} from '../common/token-counts.js';
import { type SpentTokens } from '../ledger/turn-usage.js';
import { type UsageReport } from './turn-report.js';

/** The part of a turn that used a model. */
export type UsageRole = 'router' | 'intents' | 'evaluate' | 'summarizer';

/** The place where a handler counts tokens: a function of the orchestrator, before or after its first step. */
export interface UsagePlace {
  readonly role: UsageRole;
  /** Identifies the place in every attempt: `0 refund`, or `0 refund after steps`. */
  readonly name: string;
  /**
   * True if the code before this place replayed stored results, so that an earlier attempt may have counted these
   * tokens.
   */
  readonly repeats: boolean;
}

/** The tokens counted in one place, see {@link UsagePlace}. */
interface PlaceTally {
  /** The highest count of an earlier attempt in this place. */
  readonly before: TokenCounts;
  /** The count of this attempt, including `repeated`. */
  all: TokenCounts;
  /** The tokens of this attempt that were added with `repeats`: an earlier attempt may have counted them. */
  repeated: TokenCounts;
}

const COUNTS = ['promptTokens', 'completionTokens', 'totalTokens', 'unknownCalls'] as const;
const NONE: TokenCounts = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/**
 * Counts the tokens of one turn over its attempts (FIX-15). `OrchestratorTurn` creates one for each attempt, from the
 * tokens that earlier attempts recorded. The attempt records the new total with its writes.
 *
 * An attempt that replays a step, or continues after a wait, counts tokens again. For example, attempt 1 stores the
 * step `ask`, adds the 100 tokens in its result, and fails. Attempt 2 replays `ask`, and adds the same 100 tokens: the
 * total stays 100. If it adds 130 tokens instead, 30 of them count. Tokens are compared by place.
 */
export class UsageTally {
  /** The tokens of the turn, of all attempts. */
  private total: TokenCounts;
  private readonly roles = new Map<string, TokenCounts>();
  /** By {@link UsagePlace.name}. */
  private readonly places = new Map<string, PlaceTally>();
  /** The total in the store. `null` if nothing was recorded, not even zero tokens. */
  private recordedTokens: TokenCounts | null;
  /** True until an attempt counts tokens, even zero. */
  private isEmpty: boolean;

  /** @param before the tokens that earlier attempts recorded */
  constructor(before: SpentTokens | undefined) {
    this.isEmpty = before === undefined;
    this.total = before ? tokensOf(before) : NONE;
    this.recordedTokens = before ? this.total : null;
    for (const [role, tokens] of Object.entries(before?.roles ?? {})) this.roles.set(role, tokens);
    for (const [name, tokens] of Object.entries(before?.places ?? {})) {
      this.places.set(name, { before: tokens, all: NONE, repeated: NONE });
    }
  }

  /**
   * Adds tokens that a later attempt may add again.
   * @returns the tokens as given, and the turn's total; `null` if an earlier attempt has counted all of them
   * @throws InvalidInputError
   */
  add(
    place: UsagePlace,
    usage: TokenCountsInput,
  ): { readonly tokens: TokenCounts; readonly total: TokenCounts | null } {
    const tokens = toTokenCounts(usage);
    const fresh = this.count(place, tokens);
    if (place.repeats && isSame(fresh, NONE)) return { tokens, total: null };
    return { tokens, total: this.addOnce(place.role, fresh) };
  }

  /**
   * Adds tokens that no later attempt adds again, because they are recorded with the result of their step (AIS-05): the
   * replay of a durable model's call adds none.
   * @returns the turn's total
   */
  addOnce(role: UsageRole, tokens: TokenCounts): TokenCounts {
    this.isEmpty = false;
    this.total = addUsage(this.total, tokens);
    this.roles.set(role, addUsage(this.roles.get(role) ?? NONE, tokens));
    return this.total;
  }

  /** All tokens of the turn so far, to record with the next write. `null` if they are recorded. */
  get unrecorded(): SpentTokens | null {
    const { recordedTokens } = this;
    if (this.isEmpty || (recordedTokens && isSame(recordedTokens, this.total))) return null;
    const spent = { ...this.total, roles: Object.fromEntries(this.roles) };
    const places = [...this.places].map(
      ([name, { before, all }]) => [name, combineUsage(Math.max, before, all)] as const,
    );
    return { ...spent, places: Object.fromEntries(places) };
  }

  /** Called once the store has recorded the tokens. */
  recorded(spent: SpentTokens): void {
    this.recordedTokens = tokensOf(spent);
  }

  /**
   * Returns the tokens of a turn that ends, without places.
   * @param summarizer the tokens of the session's summaries that the turn reports
   * @returns `undefined` if no tokens were counted
   */
  totalWith(summarizer: TokenCounts | null): SpentTokens | undefined {
    if (this.isEmpty && !summarizer) return undefined;
    const roles = [...(summarizer ? [['summarizer', summarizer] as const] : []), ...this.roles];
    const total = summarizer ? addUsage(this.total, summarizer) : this.total;
    return { ...total, roles: Object.fromEntries(roles) };
  }

  /** Adds the tokens to their place. @returns those that no earlier attempt has counted */
  private count({ name, repeats }: UsagePlace, tokens: TokenCounts): TokenCounts {
    const place = this.places.get(name) ?? { before: NONE, all: NONE, repeated: NONE };
    this.places.set(name, place);
    place.all = addUsage(place.all, tokens);
    if (!repeats) return tokens;
    const known = combineUsage(Math.max, place.before, place.repeated);
    place.repeated = addUsage(place.repeated, tokens);
    return combineUsage((now, then) => Math.max(0, now - then), place.repeated, known);
  }
}

/** Converts the tokens of a turn to the form of its report: the total, and a field for each role. */
export function toUsageReport({ roles, places: _, ...total }: SpentTokens): UsageReport {
  return { ...total, ...roles };
}

function isSame(a: TokenCounts, b: TokenCounts): boolean {
  return COUNTS.every((count) => (a[count] ?? 0) === (b[count] ?? 0));
}
