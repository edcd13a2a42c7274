import { jest } from '@jest/globals';
import { retryAfterMsOf, withRetryAfter } from '../../lib/ai-sdk/retry-after.js';
import { SDKS } from './fixtures/models.js';

const NOW = Date.parse('2026-11-25T08:00:00Z');

describe('retry-after', () => {
  afterEach(() => jest.useRealTimers());

  it.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Wed, 25 Nov 2026 08:01:30 GMT' }, 90_000],
    [{ 'retry-after': 'Wed, 25 Nov 2026 07:00:00 GMT' }, 0],
    [{ 'retry-after': '-5' }, 0],
    [{ 'retry-after-ms': '250' }, 250],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '7' }, 7000],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{ 'content-type': 'text/plain' }, undefined],
    [undefined, undefined],
    [null, undefined],
  ])('AIS-05 reads the headers %j', (responseHeaders, pause) => {
    jest.useFakeTimers({ now: NOW, doNotFake: ['nextTick', 'setImmediate'] });
    expect(retryAfterMsOf(Object.assign(new Error('x'), { responseHeaders }))).toBe(pause);
  });

  it.each(SDKS.slice(0, 2))('AIS-05 finds the error inside a RetryError of $name', async ({ sdk, scripted }) => {
    const { model } = scripted(() => {
      throw new sdk.APICallError({
        message: 'too many requests',
        url: 'https://example.org',
        requestBodyValues: {},
        isRetryable: true,
        responseHeaders: { 'retry-after-ms': '1' },
      });
    });
    const error: unknown = await sdk.generateText({ model, prompt: 'a', maxRetries: 1 }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ name: 'AI_RetryError' });
    expect(withRetryAfter(error)).toBe(error);
    expect(error).toHaveProperty('retryAfterMs', 1);
  });

  it('AIS-05 finds the cause of an error', () => {
    const cause = { responseHeaders: { 'retry-after': '7' } };
    expect(retryAfterMsOf(new Error('a', { cause: new Error('b', { cause }) }))).toBe(7000);
  });

  it('AIS-05 ends if an error is its own cause', () => {
    const error = new Error('a');
    error.cause = error;
    expect(retryAfterMsOf(error)).toBeUndefined();
  });

  it.each(['text', undefined, null, Object.freeze({ responseHeaders: { 'retry-after': '7' } }), new Error('x')])(
    'AIS-05 does not change %p',
    (error) => {
      expect(withRetryAfter(error)).toBe(error);
      expect(error ?? {}).not.toHaveProperty('retryAfterMs');
    },
  );
});
