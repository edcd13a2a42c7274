import { InvalidInputError } from './sessions.error.js';
import { isFields } from './json.js';

/** Tokens used by models. */
export interface TokenCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /**
   * The number of model calls for which the provider sent no usage, such as aborted ones (AIS-36). Their tokens are not
   * in the other numbers. Absent if there are none.
   */
  readonly unknownCalls?: number;
}

/** A call of a model for which the provider has sent no usage. */
export const UNKNOWN_CALL: TokenCounts = { promptTokens: 0, completionTokens: 0, totalTokens: 0, unknownCalls: 1 };

/** A number of tokens; `null` and `undefined` count as 0. @inline */
type Count = number | null | undefined;

/**
 * Token usage in the form of a provider (FIX-25): of the AI SDK (`inputTokens`, before version 5 `promptTokens`, in
 * providers `inputTokens.total`), of OpenAI (`prompt_tokens`, in responses `input_tokens`) or of Anthropic
 * (`input_tokens`, to which cached tokens are added). A count that is missing or not finite is 0. The total defaults to
 * the sum.
 */
export interface TokenCountsInput {
  /** Tokens of the prompt, as this package and older versions of the AI SDK name them. Default 0. */
  readonly promptTokens?: Count;
  /** Tokens of the answer, as this package and older versions of the AI SDK name them. Default 0. */
  readonly completionTokens?: Count;
  /** All tokens. Default: the sum of the others. */
  readonly totalTokens?: Count;
  /** Tokens of the prompt, as the AI SDK names them. Default 0. */
  readonly inputTokens?: Count | { readonly total?: Count };
  /** Tokens of the answer, as the AI SDK names them. Default 0. */
  readonly outputTokens?: Count | { readonly total?: Count };
  /** Tokens of the prompt, as OpenAI names them. Default 0. */
  readonly prompt_tokens?: Count;
  /** Tokens of the answer, as OpenAI names them. Default 0. */
  readonly completion_tokens?: Count;
  /** All tokens, as OpenAI names them. Default: the sum of the others. */
  readonly total_tokens?: Count;
  /** Tokens of the prompt, as OpenAI's responses and Anthropic name them. Default 0. */
  readonly input_tokens?: Count;
  /** Tokens of the answer, as OpenAI's responses and Anthropic name them. Default 0. */
  readonly output_tokens?: Count;
  /** Tokens of the prompt that Anthropic wrote to its cache; they are added to the prompt. Default 0. */
  readonly cache_creation_input_tokens?: Count;
  /** Tokens of the prompt that Anthropic read from its cache; they are added to the prompt. Default 0. */
  readonly cache_read_input_tokens?: Count;
  /** The number of model calls whose tokens are unknown, as {@link TokenCounts} has it. Default 0. */
  readonly unknownCalls?: Count;
}

const PROMPT = ['promptTokens', 'inputTokens', 'prompt_tokens', 'input_tokens'];
/** Anthropic does not include these in `input_tokens`. */
const CACHE = ['cache_creation_input_tokens', 'cache_read_input_tokens'];
const COMPLETION = ['completionTokens', 'outputTokens', 'completion_tokens', 'output_tokens'];
const TOTAL = ['totalTokens', 'total_tokens'];
/** Fields that remain in the JSON of the AI SDK's usage if the provider reports no tokens. */
const DETAILS = ['inputTokenDetails', 'outputTokenDetails'];
const UNKNOWN_CALLS = 'unknownCalls';
const COUNTS = [...PROMPT, ...CACHE, ...COMPLETION, ...TOTAL];
const KNOWN = [...COUNTS, UNKNOWN_CALLS, ...DETAILS];

/**
 * Converts the usage of a provider.
 * @throws InvalidInputError if the value is not an object, has no known field, or has a negative number
 */
export function toTokenCounts(usage: unknown): TokenCounts {
  if (!isFields(usage)) throw new InvalidInputError('usage', 'must be an object with token counts.');
  if (!KNOWN.some((field) => Object.hasOwn(usage, field))) {
    const fields = Object.keys(usage).slice(0, 10).join(', ') || 'none';
    throw new InvalidInputError('usage', `must have one of the fields ${COUNTS.join(', ')}. Received: ${fields}.`);
  }
  const cached = CACHE.reduce((sum, field) => sum + (count(usage, field) ?? 0), 0);
  const promptTokens = (first(usage, PROMPT) ?? 0) + cached;
  const completionTokens = first(usage, COMPLETION) ?? 0;
  const totalTokens = first(usage, TOTAL) ?? promptTokens + completionTokens;
  return tokensOf({ promptTokens, completionTokens, totalTokens, unknownCalls: count(usage, UNKNOWN_CALLS) ?? 0 });
}

export function addUsage(a: TokenCounts, b: TokenCounts): TokenCounts {
  return combineUsage((one, other) => one + other, a, b);
}

/** Returns only the counts. */
export function tokensOf({ promptTokens, completionTokens, totalTokens, unknownCalls = 0 }: TokenCounts): TokenCounts {
  const tokens = { promptTokens, completionTokens, totalTokens };
  return unknownCalls === 0 ? tokens : { ...tokens, unknownCalls };
}

export function subtractUsage(a: TokenCounts, b: TokenCounts): TokenCounts {
  return combineUsage((one, other) => one - other, a, b);
}

/** Combines each count of two usages. */
export function combineUsage(by: (a: number, b: number) => number, a: TokenCounts, b: TokenCounts): TokenCounts {
  return tokensOf({
    promptTokens: by(a.promptTokens, b.promptTokens),
    completionTokens: by(a.completionTokens, b.completionTokens),
    totalTokens: by(a.totalTokens, b.totalTokens),
    unknownCalls: by(a.unknownCalls ?? 0, b.unknownCalls ?? 0),
  });
}

function first(usage: Record<string, unknown>, fields: readonly string[]): number | null {
  for (const field of fields) {
    const value = count(usage, field);
    if (value !== null) return value;
  }
  return null;
}

function count(usage: Record<string, unknown>, field: string): number | null {
  const given = usage[field];
  const value = isFields(given) ? given.total : given;
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isFinite(value)) return 0;
  if (value < 0) throw new InvalidInputError(`usage.${field}`, 'must be 0 or more.');
  return value;
}
