import { jest } from '@jest/globals';
import fc from 'fast-check';
import { type ConversationMessage } from 'nestjs-agent-sessions';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { loadTokenCounter, piecesOf } from '../../lib/conversation/token-counter.js';

describe('the default token counter', () => {
  it('BOT-40 counts like o200k_base', async () => {
    const count = await loadTokenCounter('This test');
    expect(count('Where is my order?')).toBe(5);
    expect(count('')).toBe(0);
    const prose = 'The parcel left the warehouse on Monday and has been on its way since. '.repeat(40);
    const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
    expect(count(prose)).toBe(countTokens(prose));
  });

  it('BOT-40 counts special tokens in user messages as text', async () => {
    const count = await loadTokenCounter('This test');
    expect(count('<|endoftext|>')).toBeGreaterThan(1);
  });

  it('BOT-40 counts 100,000 characters without a space in a short time', async () => {
    const count = await loadTokenCounter('This test');
    const startedAt = performance.now();
    // Counted as one piece, this takes more than a minute.
    expect(count('文'.repeat(100_000))).toBeGreaterThan(10_000);
    expect(count(' '.repeat(100_000))).toBeGreaterThan(500);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  it('BOT-40 splits a string into pieces without splitting a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        const pieces = piecesOf(text, 8);
        expect(pieces.join('')).toBe(text);
        expect(pieces.every((piece) => piece.length > 0 && piece.length <= 8 && !/\p{Cs}/u.test(piece))).toBe(true);
      }),
    );
  });
});

describe('MessageTokens', () => {
  const perCharacter = (text: string): number => text.length;
  const none = new MessageTokens(() => 0).of({ role: 'user', content: '' });

  it.each([
    { what: 'a string', message: { role: 'user', content: 'abc' } as const, count: 3 },
    { what: 'a name', message: { role: 'user', content: 'abc', name: 'ann' } as const, count: 6 },
    { what: 'text in parts', message: { role: 'user', content: [{ type: 'text', text: 'abcd' }] } as const, count: 4 },
    {
      what: 'parts other than text as JSON',
      message: { role: 'user', content: [{ type: 'image', url: 'x' }] } as const,
      count: JSON.stringify({ type: 'image', url: 'x' }).length,
    },
    {
      what: 'tool calls and their arguments',
      message: {
        role: 'assistant',
        content: null,
        toolCalls: [
          { id: '1', name: 'find', arguments: '{"a":1}' },
          { id: '2', name: 'get', arguments: { b: 2 } },
        ],
      } as const,
      count: 4 + 7 + 3 + 7,
    },
    {
      what: 'the text of reasoning',
      message: {
        role: 'assistant',
        content: [{ type: 'reasoning', text: 'abcde', state: 'done', providerMetadata: { p: { signature: 'long' } } }],
      } as const,
      count: 5,
    },
    {
      what: 'name, input and output of tool parts',
      message: {
        role: 'assistant',
        content: [
          { type: 'tool-find', toolCallId: 'c1', state: 'output-available', input: { a: 1 }, output: 'found' },
          { type: 'dynamic-tool', toolName: 'get', toolCallId: 'c2', state: 'input-available', input: { b: 2 } },
          { type: 'tool-pay', toolCallId: 'c3', state: 'output-error', rawInput: '{', errorText: 'declined' },
        ],
      } as const,
      count: 4 + 7 + 5 + (3 + 7) + (3 + 1 + 8),
    },
    {
      what: 'sources, starts of steps and data of front ends as nothing',
      message: {
        role: 'assistant',
        content: [
          { type: 'step-start' },
          { type: 'source-url', sourceId: 's', url: 'https://shop.example' },
          { type: 'source-document', sourceId: 's', mediaType: 'text/plain', title: 't' },
          { type: 'data-progress', data: { percent: 50 } },
          { type: 'text', text: 'abc' },
        ],
      } as const,
      count: 3,
    },
    { what: 'tool results', message: { role: 'tool', toolCallId: '1', content: 'found' } as const, count: 5 },
  ])('BOT-40 counts $what', ({ message, count }) => {
    expect(new MessageTokens(perCharacter).of(message) - none).toBe(count);
  });

  it('BOT-40 counts 1,000 tokens for a file of any size', () => {
    const ofFile = (url: string): number =>
      new MessageTokens(perCharacter).of({ role: 'user', content: [{ type: 'file', mediaType: 'image/png', url }] });
    expect(ofFile('https://shop.example/a.png') - none).toBe(1000);
    expect(ofFile(`data:image/png;base64,${'A'.repeat(500_000)}`) - none).toBe(1000);
  });

  it('BOT-40 counts a message of the log once, and distinguishes messages with the same id', () => {
    const counter = jest.fn(perCharacter);
    const tokens = new MessageTokens(counter);
    const message: ConversationMessage = { id: 'x', role: 'user', content: 'abc', position: 1, createdAt: 'then' };
    expect([tokens.of(message), tokens.of({ ...message })]).toEqual([none + 3, none + 3]);
    expect(counter).toHaveBeenCalledTimes(1);
    expect(tokens.of({ ...message, content: 'abcdef', createdAt: 'later' } as ConversationMessage)).toBe(none + 6);
    // Messages from callers may reuse any id.
    expect(tokens.of({ id: 'x', role: 'user', content: 'abcd' })).toBe(none + 4);
  });

  it('BOT-40 remembers the counts of 50,000 messages, and no more than 100,000', () => {
    const counter = jest.fn(perCharacter);
    const tokens = new MessageTokens(counter);
    const nth = (position: number) =>
      ({ id: `${position}`, role: 'user', content: 'a', position, createdAt: 'then' }) as const;
    const recounted = (from: number, through: number): number => {
      counter.mockClear();
      for (let i = from; i <= through; i += 1) tokens.of(nth(i));
      return counter.mock.calls.length;
    };
    expect(recounted(1, 50_000)).toBe(50_000);
    expect(recounted(1, 50_000)).toBe(0);
    // Recently used counts are kept.
    expect(recounted(50_001, 90_000) + recounted(1, 1) + recounted(90_001, 140_000)).toBe(90_000);
    expect(recounted(1, 1)).toBe(0);
    expect(recounted(2, 2)).toBe(1);
  });

  it.each([NaN, -1, Infinity, '3', undefined])('BOT-40 rejects a counter that returns %p', (count) => {
    const tokens = new MessageTokens(() => count as number);
    expect(() => tokens.of({ role: 'user', content: 'hi' })).toThrow('tokenCounter must return a number of 0 or more.');
  });
});
