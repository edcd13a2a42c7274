import { jest } from '@jest/globals';
import fc from 'fast-check';
import { type ConversationMessage, type JsonObject, type MessageDraft } from 'nestjs-agent-sessions';
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
      what: 'other parts as JSON',
      message: { role: 'user', content: [{ type: 'place', city: 'x' }] } as const,
      count: JSON.stringify({ type: 'place', city: 'x' }).length,
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

  const bytes = 'AAAA';

  it.each<JsonObject>([
    { type: 'image', image: { $type: 'bytes', value: bytes } },
    { type: 'image', image: 'https://shop.example/a.png' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${bytes}` } },
    { type: 'input_image', image_url: `data:image/png;base64,${bytes}` },
    { type: 'input_audio', input_audio: { data: bytes, format: 'wav' } },
    { type: 'audio', data: bytes, mimeType: 'audio/wav' },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: bytes } },
    { type: 'media', mediaType: 'image/png', data: bytes },
    { type: 'file-data', mediaType: 'application/pdf', data: bytes },
    { type: 'image-data', mediaType: 'image/png', data: bytes },
    { type: 'image-url', url: 'https://shop.example/a.png' },
    { $type: 'bytes', value: bytes },
  ])('BOT-40 counts 1,000 tokens for %j, also inside of tool results', (file) => {
    const tokens = new MessageTokens(perCharacter);
    const inside = (output: JsonObject): number =>
      tokens.of({ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'shot', output }] }) - none;
    const shown = (output: JsonObject): number =>
      tokens.of({ role: 'assistant', content: [{ type: 'tool-shot', toolCallId: 'c', output }] }) - none;
    const without = 'shot'.length + JSON.stringify({ value: [null] }).length;
    for (const counted of [inside, shown]) expect(counted({ value: [file] })).toBe(without + 1000);
    const { type } = file;
    if (typeof type === 'string') expect(tokens.of({ role: 'user', content: [{ ...file, type }] }) - none).toBe(1000);
  });

  it('BOT-40 counts JSON with the type of a file as text', () => {
    const found: JsonObject[] = [
      { type: 'document', title: 'Returns', source: 'wiki' },
      { type: 'video', title: 'Lamps' },
    ];
    const message: MessageDraft = {
      role: 'assistant',
      content: [{ type: 'tool-search', toolCallId: 'c', output: found }],
    };
    expect(new MessageTokens(perCharacter).of(message) - none).toBe(6 + JSON.stringify(found).length);
  });

  it('BOT-40 estimates a long run without white space by its length', () => {
    let counted = 0;
    const tokens = new MessageTokens((text) => ((counted += text.length), Math.ceil(text.length / 2)));
    const start = tokens.of({ role: 'user', content: '' });
    const words = 'Where is my order? '.repeat(1000);
    const ofText = (content: string): number => tokens.of({ role: 'user', content }) - start;
    expect(ofText(`${words}${'A'.repeat(1_000_000)}`)).toBe(words.length / 2 + 500_000);
    expect(counted).toBe(words.length + 1000);
    expect(ofText('A'.repeat(10_000))).toBe(5000);
    expect(counted).toBe(words.length + 11_000);
    expect(ofText(words)).toBe(words.length / 2);
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
