import fc from 'fast-check';
import { type MessageDraft } from 'nestjs-agent-sessions';
import { FIRST_HEAD, viewThrough } from '../../lib/conversation/conversation-head.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { wholeCut } from '../../lib/conversation/tool-pairs.js';
import { cutWindow, viewOf, type WindowShape } from '../../lib/conversation/window.js';
import { anyClientLog, anyLog, brokenPairs, callsOfResults, rejectedCalls } from './histories.js';

/** A token is a character. */
const tokens = new MessageTokens((text) => text.length);

const shape: fc.Arbitrary<WindowShape> = fc.oneof(
  fc.nat(20),
  fc.integer({ min: 1, max: 400 }).map((maxTokens) => ({ maxTokens })),
  // A function may choose any of the messages, unchanged or copied.
  fc.tuple(fc.infiniteStream(fc.boolean()), fc.boolean()).map(([stream, copies]): WindowShape => {
    const choices = [...stream.take(40)];
    return ({ messages }) =>
      messages.flatMap((message, index) => (choices[index] ? [copies ? withoutLog(message) : message] : []));
  }),
);

describe('cutWindow', () => {
  it('BOT-40 never separates calls from their results, whatever the window', () => {
    fc.assert(
      fc.property(anyLog, shape, (log, window) => {
        expect(brokenPairs(cutWindow(window, viewOf(log), tokens, 'window'), log)).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  it('BOT-40 keeps the leading system message and the summary, whatever the window', () => {
    fc.assert(
      fc.property(anyLog, shape, fc.nat(10), (log, window, through) => {
        fc.pre(window !== 0);
        const summary = summaryOf(through);
        const view = viewThrough(
          { ...FIRST_HEAD, number: 1, through, summary, shown: summary, hiddenThrough: through },
          log,
        );
        const cut = cutWindow(window, view, tokens, 'window');
        const lead = [...(log[0]?.role === 'system' ? [log[0]] : []), summary];
        expect(cut.slice(0, lead.length)).toEqual(lead);
        // No message that the summary replaces.
        const positions = cut.slice(lead.length).map(({ id }) => Number(id?.slice(1)));
        expect(positions.every((position) => position > through)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('BOT-40 keeps to a token budget, counting the pinned message and the summary', () => {
    fc.assert(
      fc.property(anyLog, fc.integer({ min: 1, max: 400 }), fc.boolean(), (log, maxTokens, summarized) => {
        const view = { ...viewOf(log), summary: summarized ? summaryOf(0) : null };
        const lead = [...view.pinned, ...(view.summary ? [view.summary] : [])];
        const cut = cutWindow({ maxTokens }, view, tokens, 'window');
        expect(tokens.ofAll(cut)).toBeLessThanOrEqual(Math.max(maxTokens, tokens.ofAll(lead)));
        // The window ends with the conversation, and one more message would exceed the budget.
        const rest = view.messages.length - cut.length + lead.length;
        if (rest === 0 || log.some(({ role, toolCalls }) => role === 'tool' || toolCalls)) return;
        expect(cut.slice(lead.length)).toEqual(view.messages.slice(rest));
        expect(tokens.ofAll([...lead, ...view.messages.slice(rest - 1)])).toBeGreaterThan(maxTokens);
      }),
      { numRuns: 1000 },
    );
  });

  it('BOT-40 matches reused call ids within their own turn', () => {
    const log = [call('1', 'x'), result('2', 'x'), said('3'), call('4', 'x'), result('5', 'x')];
    expect(ids(cutWindow(4, viewOf(log), tokens, 'window'))).toEqual(['3', '4', '5']);
    expect(ids(cutWindow(2, viewOf(log), tokens, 'window'))).toEqual(['4', '5']);
    expect(ids(cutWindow(1, viewOf(log), tokens, 'window'))).toEqual([]);
  });

  it('BOT-40 keeps parallel calls with results that are not adjacent', () => {
    const log = [call('1', 'x', 'y'), result('2', 'y'), said('3'), result('4', 'x'), said('5')];
    expect(ids(cutWindow(5, viewOf(log), tokens, 'window'))).toEqual(['1', '2', '4', '3', '5']);
    expect(ids(cutWindow(4, viewOf(log), tokens, 'window'))).toEqual(['3', '5']);
    const oneAnswer: WindowShape = ({ messages }) => messages.filter(({ id }) => id !== '4');
    expect(ids(cutWindow(oneAnswer, viewOf(log), tokens, 'window'))).toEqual(['3', '5']);
  });

  it('FIX-60 gives models each call with one result, wherever the log is cut', () => {
    fc.assert(
      fc.property(anyClientLog, shape, (log, window) => {
        for (let cut = 0; cut <= log.length; cut += 1) {
          const messages = cutWindow(window, viewOf(log.slice(0, cut)), tokens, 'window');
          expect({ cut, rejected: rejectedCalls(messages) }).toEqual({ cut, rejected: [] });
        }
      }),
      { numRuns: 300 },
    );
  });

  it('FIX-60 leaves the calls open that the input answers, and no other', () => {
    fc.assert(
      fc.property(anyClientLog, shape, fc.constantFrom('a', 'b', 'c'), (log, window, id) => {
        for (let cut = 0; cut <= log.length; cut += 1) {
          const view = viewOf(log.slice(0, cut));
          const messages = cutWindow(window, view, tokens, 'window', new Set([id]));
          const isOpen = rejectedCalls(messages).length > 0;
          const input: MessageDraft = { role: 'user', content: [{ type: 'tool-result', toolCallId: id, output: 1 }] };
          expect(rejectedCalls(isOpen ? [...messages, input] : messages)).toEqual([]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('FIX-60 gives a call without a result an interrupted one', () => {
    const log = [said('1'), call('2', 'x', 'y'), result('3', 'x')];
    const [called, answer, cut] = cutWindow(3, viewOf(log), tokens, 'window');
    expect([called, answer]).toEqual(log.slice(1));
    expect(cut).toMatchObject({ role: 'tool', toolCallId: 'y', name: 'f', metadata: { error: 'interrupted' } });
    expect(cutWindow(4, viewOf([...log, said('4')]), tokens, 'window')).toEqual([called, answer, cut, said('4')]);
  });

  it('FIX-60 takes a late result of a tool, and the first of several', () => {
    const log = [call('1', 'x'), said('2'), result('3', 'x'), result('4', 'x')];
    expect(ids(cutWindow(9, viewOf(log), tokens, 'window'))).toEqual(['1', '3', '2']);
  });

  it('FIX-60 takes results from the next message of the user only', () => {
    const brings = (id: string): MessageDraft => ({
      id,
      role: 'user',
      content: [
        { type: 'tool-result', toolCallId: 'x', output: 1 },
        { type: 'text', text: 'Here.' },
      ],
    });
    expect(cutWindow(9, viewOf([call('1', 'x'), brings('2')]), tokens, 'window')).toEqual([
      call('1', 'x'),
      brings('2'),
    ]);
    const late = cutWindow(9, viewOf([call('1', 'x'), said('2'), brings('3')]), tokens, 'window');
    expect(ids(late)).toEqual(['1', '1.0', '2', '3']);
    expect(late[3].content).toEqual([{ type: 'text', text: 'Here.' }]);
    expect(ids(cutWindow(1, viewOf([call('1', 'x'), brings('2')]), tokens, 'window'))).toEqual(['2']);
  });

  it('FIX-60 knows the open calls of UI messages', () => {
    const part = { type: 'tool-find', toolCallId: 'x', input: {} };
    const log = (state: string): MessageDraft[] => [
      { id: '1', role: 'assistant', content: [{ ...part, state }] },
      said('2'),
    ];
    expect(ids(cutWindow(9, viewOf(log('input-available')), tokens, 'window'))).toEqual(['1', '1.0', '2']);
    expect(ids(cutWindow(9, viewOf(log('output-available')), tokens, 'window'))).toEqual(['1', '2']);
  });

  it('BOT-40 keeps a copied call that has only one of its two results', () => {
    const log = [call('1', 'x', 'y'), result('2', 'x')];
    const copies: WindowShape = ({ messages }) => messages.map(withoutLog);
    expect(ids(cutWindow(copies, viewOf(log), tokens, 'window'))).toEqual(['1', '2', '1.0']);
  });

  it('BOT-40 lets a function add and shorten messages', () => {
    const log = [call('1', 'x'), result('2', 'x'), said('3')];
    const shorter: WindowShape = ({ messages }) => [
      { role: 'assistant', content: 'Earlier: nothing.' },
      ...messages.map((message) => (message.role === 'tool' ? { ...withoutLog(message), content: '...' } : message)),
    ];
    expect(cutWindow(shorter, viewOf(log), tokens, 'window')).toEqual([
      { role: 'assistant', content: 'Earlier: nothing.' },
      log[0],
      { ...withoutLog(log[1]), content: '...' },
      log[2],
    ]);
  });

  it.each([
    { what: 'nothing', returned: undefined, message: /^window must be an array of messages/ },
    { what: 'a promise', returned: Promise.resolve([]), message: /^window must be an array of messages/ },
    { what: 'strings', returned: ['hi'], message: /^window\[0\] must be an object with role and content/ },
  ])('BOT-40 rejects a function that returns $what, with the path', ({ returned, message }) => {
    const wrong = (() => returned) as unknown as WindowShape;
    expect(() => cutWindow(wrong, viewOf([said('1')]), tokens, 'window')).toThrow(message);
  });
});

describe('wholeCut', () => {
  it('BOT-40 cuts as late as it can and separates no result from its call', () => {
    fc.assert(
      fc.property(anyLog, fc.nat(32), (log, at) => {
        const cut = wholeCut(log, at);
        const splits = (index: number): boolean =>
          [...callsOfResults(log)].some(([answer, called]) => {
            const from = log.findIndex(({ id }) => id === called);
            return called !== null && from < index && log.findIndex(({ id }) => id === answer) >= index;
          });
        expect(splits(cut)).toBe(false);
        for (let later = cut + 1; later <= Math.min(at, log.length); later += 1) expect(splits(later)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

function summaryOf(
  through: number,
): MessageDraft & { id: string; position: number; createdAt: string; replaces: { from: number; through: number } } {
  const replaces = { from: 1, through };
  return {
    id: 's',
    role: 'system',
    content: 'They spoke.',
    position: through,
    createdAt: '2026-11-01T12:00:00.000Z',
    replaces,
  };
}

function said(id: string): MessageDraft {
  return { id, role: 'user', content: 'q' };
}

function call(id: string, ...calls: string[]): MessageDraft {
  return {
    id,
    role: 'assistant',
    content: null,
    toolCalls: calls.map((one) => ({ id: one, name: 'f', arguments: {} })),
  };
}

function result(id: string, toolCallId: string): MessageDraft {
  return { id, role: 'tool', content: 'r', toolCallId };
}

function ids(messages: readonly MessageDraft[]): (string | undefined)[] {
  return messages.map(({ id }) => id);
}

/** Copies a message without its log fields, as a function would. */
function withoutLog({ role, content, toolCalls, toolCallId, id }: MessageDraft): MessageDraft {
  return {
    role,
    content,
    ...(id ? { id } : {}),
    ...(toolCalls ? { toolCalls } : {}),
    ...(toolCallId ? { toolCallId } : {}),
  };
}
