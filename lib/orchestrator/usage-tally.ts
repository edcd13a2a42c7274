import { addUsage, type TokenUsage, type TokenUsageInput, toTokenUsage } from '../common/token-usage.js';
import { type UsageReport } from './turn-report.js';

/** Whose model it was. */
export type UsageRole = 'router' | 'intents' | 'evaluate' | 'summarizer';

export interface TalliedUsage {
  readonly role: UsageRole;
  readonly tokens: TokenUsage;
}

const NONE: TokenUsage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/** The tokens of one turn, by who took them; of earlier attempts, what their complete iterations took. */
export class UsageTally {
  private readonly journal: TalliedUsage[] = [];

  /** @throws InvalidInputError */
  add(role: UsageRole, usage: TokenUsageInput): TokenUsage {
    const tokens = toTokenUsage(usage);
    this.journal.push({ role, tokens });
    return tokens;
  }

  mark(): number {
    return this.journal.length;
  }

  since(mark: number): readonly TalliedUsage[] {
    return this.journal.slice(mark);
  }

  replay(usages: readonly TalliedUsage[]): void {
    this.journal.push(...usages);
  }

  /**
   * @param summarizer what the turn reports of the session's summaries
   * @returns `undefined` when no model was asked
   */
  reportWith(summarizer: TokenUsage | null): UsageReport | undefined {
    const journal = [...(summarizer ? [{ role: 'summarizer', tokens: summarizer } as const] : []), ...this.journal];
    if (journal.length === 0) return undefined;
    const byRole: Partial<Record<UsageRole, TokenUsage>> = {};
    let total = NONE;
    for (const { role, tokens } of journal) {
      byRole[role] = addUsage(byRole[role] ?? NONE, tokens);
      total = addUsage(total, tokens);
    }
    return { ...total, ...byRole };
  }
}
