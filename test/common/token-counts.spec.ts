import { type LanguageModelV3Usage } from '@ai-sdk/provider';
import { type LanguageModelUsage } from 'ai';
import { InvalidInputError, type TokenCountsInput } from 'nestjs-agent-sessions';
import { addUsage, subtractUsage, toTokenCounts } from '../../lib/common/token-counts.js';

const AI_SDK: LanguageModelUsage = {
  inputTokens: 100,
  inputTokenDetails: { noCacheTokens: 60, cacheReadTokens: 30, cacheWriteTokens: 10 },
  outputTokens: 20,
  outputTokenDetails: { textTokens: 15, reasoningTokens: 5 },
  totalTokens: 125,
};
const AI_SDK_PROVIDER: LanguageModelV3Usage = {
  inputTokens: { total: 100, noCache: 60, cacheRead: 30, cacheWrite: 10 },
  outputTokens: { total: 20, text: 15, reasoning: 5 },
};
const OPENAI = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 30 },
};
const OPENAI_RESPONSES = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 30 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 120,
};
const ANTHROPIC = {
  input_tokens: 60,
  cache_creation_input_tokens: 10,
  cache_read_input_tokens: 30,
  output_tokens: 20,
  service_tier: 'standard',
};

describe('FIX-25 reads token usage', () => {
  const cases: [string, TokenCountsInput, number, number, number][] = [
    ['of the AI SDK', AI_SDK, 100, 20, 125],
    ['of providers of the AI SDK', AI_SDK_PROVIDER, 100, 20, 120],
    ['of the AI SDK before version 5', { promptTokens: 100, completionTokens: 20 }, 100, 20, 120],
    ['of OpenAI', OPENAI, 100, 20, 120],
    ["of OpenAI's responses", OPENAI_RESPONSES, 100, 20, 120],
    ['of Anthropic, with the tokens of its cache', ANTHROPIC, 100, 20, 120],
    [
      'of Anthropic without a cache',
      { ...ANTHROPIC, cache_creation_input_tokens: null, cache_read_input_tokens: null },
      60,
      20,
      80,
    ],
    ['with a total alone', { totalTokens: 7 }, 0, 0, 7],
    ['with counts that are not finite', { inputTokens: NaN, outputTokens: 3 }, 0, 3, 3],
    [
      'of a provider that reports none',
      { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined },
      0,
      0,
      0,
    ],
  ];

  it.each(cases)('%s', (_, usage, promptTokens, completionTokens, totalTokens) => {
    expect(toTokenCounts(usage)).toEqual({ promptTokens, completionTokens, totalTokens });
  });

  it('of the AI SDK without counts, as a stored step returns it', () => {
    const usage: unknown = JSON.parse(
      JSON.stringify({ ...AI_SDK, inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }),
    );
    expect(toTokenCounts(usage)).toEqual({ promptTokens: 0, completionTokens: 0, totalTokens: 0 });
  });

  it.each([
    [{}, 'Received: none.'],
    [{ tokens: 5, cost: 1 }, 'Received: tokens, cost.'],
    [null, 'must be an object'],
    [5, 'must be an object'],
  ])('and refuses %j', (usage, problem) => {
    expect(() => toTokenCounts(usage)).toThrow(InvalidInputError);
    expect(() => toTokenCounts(usage)).toThrow(problem);
  });

  it.each([{ input_tokens: -1 }, { outputTokens: { total: -2 } }])(
    'and refuses the negative numbers of %j',
    (usage) => {
      expect(() => toTokenCounts(usage)).toThrow('must be 0 or more');
    },
  );
});

describe('the usage of a turn', () => {
  it('AIS-36 keeps the number of calls whose tokens are unknown, if there are any', () => {
    const one = toTokenCounts({ totalTokens: 7 });
    const other = toTokenCounts({ totalTokens: 5, unknownCalls: 2 });
    expect(other).toEqual({ promptTokens: 0, completionTokens: 0, totalTokens: 5, unknownCalls: 2 });
    const sum = addUsage(one, other);
    expect(sum).toEqual({ promptTokens: 0, completionTokens: 0, totalTokens: 12, unknownCalls: 2 });
    expect(subtractUsage(sum, other)).toEqual(one);
    expect(toTokenCounts({ unknownCalls: 1 })).toMatchObject({ totalTokens: 0, unknownCalls: 1 });
    expect(() => toTokenCounts({ unknownCalls: -1 })).toThrow('usage.unknownCalls must be 0 or more');
  });
});
