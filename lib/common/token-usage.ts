import { InvalidInputError } from './sessions.error.js';
import { isPlainObject } from './json.js';

/** Tokens that models took and gave. */
export interface TokenUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
}

/** As a provider reports it. What is missing or not finite counts 0; the total is by default the sum of both. */
export type TokenUsageInput = Partial<TokenUsage>;

/** @throws InvalidInputError for what is no object, and for a negative number */
export function toTokenUsage(usage: unknown): TokenUsage {
  if (!isPlainObject(usage)) throw new InvalidInputError('usage', 'must be an object with numbers of tokens.');
  const promptTokens = count(usage, 'promptTokens') ?? 0;
  const completionTokens = count(usage, 'completionTokens') ?? 0;
  return {
    promptTokens,
    completionTokens,
    totalTokens: count(usage, 'totalTokens') ?? promptTokens + completionTokens,
  };
}

export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    totalTokens: a.totalTokens + b.totalTokens,
  };
}

function count(usage: Record<string, unknown>, field: string): number | null {
  const value = usage[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isFinite(value)) return 0;
  if (value < 0) throw new InvalidInputError(`usage.${field}`, 'must not be negative.');
  return value;
}
