import { addUsage, type TokenUsage, type TokenUsageInput, toTokenUsage } from '../orchestration/token-usage.js';
import { type UsageReport } from './turn-report.js';

/** Whose model it was. */
export type UsageRole = 'router' | 'intents' | 'evaluate';

const NONE: TokenUsage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/** The tokens of one attempt of a turn, by who took them. */
export class UsageTally {
  private readonly byRole: Partial<Record<UsageRole, TokenUsage>> = {};

  /** @throws InvalidInputError */
  add(role: UsageRole, usage: TokenUsageInput): TokenUsage {
    const tokens = toTokenUsage(usage);
    this.byRole[role] = addUsage(this.byRole[role] ?? NONE, tokens);
    return tokens;
  }

  /** `undefined` when no model was asked. */
  get report(): UsageReport | undefined {
    const usages = Object.values(this.byRole);
    return usages.length === 0 ? undefined : { ...usages.reduce(addUsage, NONE), ...this.byRole };
  }
}
