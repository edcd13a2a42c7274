import fc from 'fast-check';
import { AnswerError } from '../../lib/chat/chat.errors.js';
import { ChunkFilter } from '../../lib/chat/chunk-filter.js';
import { UI_RESET } from '../../lib/chat/message-fold.js';
import { toProtocol } from '../../lib/chat/protocol-chunks.js';
import { segmentsOf } from '../../lib/chat/replay.js';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { expectLinear } from '../support/linear-cost.js';
import { client7, comparable, fold, inOrder } from './clients.js';
import { type Attempt, differentAttempts, equalAttempts, runTurn, type Turn } from './random-answers.js';

describe('ChunkFilter, if the model answers differently when it is asked again', () => {
  it('AIS-14 stores the message of the last attempt, wherever the earlier ones were killed', () => {
    fc.assert(
      fc.property(differentAttempts, fc.boolean(), (attempts, hasSteps) => {
        const { own, stored, message } = run(attempts, hasSteps);
        expect(inOrder(fold(stored))).toEqual(inOrder(fold(own)));
        expect(fold(stored)).toEqual(message);
      }),
      { numRuns: 300 },
    );
  });

  it('AIS-14 shows clients of ai 7 the message of the last attempt, and nothing twice', async () => {
    await fc.assert(
      fc.asyncProperty(differentAttempts, fc.boolean(), async (attempts, hasSteps) => {
        const { own, stored } = run(attempts, hasSteps);
        const undisturbed = inOrder(await client7(toProtocol(written([], own), 7).chunks));
        expect(inOrder(await client7(toProtocol(stored, 7).chunks))).toEqual(undisturbed);
        // The same, with a response of its own after each wait.
        let shown: AnyUIMessage | undefined;
        for (const segment of segmentsOf(stored)) shown = await client7(toProtocol(segment, 7).chunks, shown);
        expect(inOrder(shown as AnyUIMessage)).toEqual(undisturbed);
      }),
      { numRuns: 60 },
    );
  });

  it('AIS-14 resets at most one step in each attempt, and gives each block another id', () => {
    fc.assert(
      fc.property(differentAttempts, fc.boolean(), (attempts, hasSteps) => {
        const { stored } = run(attempts, hasSteps);
        expect(stored.filter(isReset).length).toBeLessThan(attempts.length);
        const ids = stored.filter(({ type }) => /^(text|reasoning)-start$/.test(type)).map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
      }),
      { numRuns: 300 },
    );
  });
});

describe('ChunkFilter, if the model always gives the same answer', () => {
  it('AIS-14 resets nothing, and writes all text and each state of a tool call once', () => {
    fc.assert(
      fc.property(equalAttempts, (attempts) => {
        const { own, stored } = run(attempts);
        expect(stored.filter(isReset)).toEqual([]);
        expect(comparable(fold(stored))).toEqual(comparable(fold(own)));
        for (const field of ['delta', 'inputTextDelta']) expect(lengthOf(stored, field)).toBe(lengthOf(own, field));
        for (const type of ONCE) {
          const count = (chunks: readonly UIChunk[]) => chunks.filter((chunk) => chunk.type === type).length;
          expect([type, count(stored)]).toEqual([type, count(own)]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('AIS-14 writes all chunks of the first attempt unchanged, except block ids and updates that change nothing', () => {
    fc.assert(
      fc.property(equalAttempts, ([attempt]) => {
        const { own, stored } = run([attempt]);
        const isOther = ({ type, preliminary }: UIChunk) => type !== 'data-progress' && preliminary !== true;
        const withoutIds = (chunks: readonly UIChunk[]) => chunks.filter(isOther).map(({ id: _, ...chunk }) => chunk);
        expect(withoutIds(stored)).toEqual(withoutIds(own));
      }),
    );
  });
});

describe('ChunkFilter', () => {
  const start = { type: 'start', messageId: 'turn' };
  const step = { type: 'start-step' };
  const stepEnd = { type: 'finish-step' };
  const finish = { type: 'finish' };

  it('AIS-14 writes the rest of a text of which a beginning was shown', () => {
    const shown = [start, step, ...textOf('text-1', 'Hel').slice(0, 2)];
    expect(written(shown, [start, step, ...textOf('msg_2', 'Hello')])).toEqual([
      { type: 'text-delta', id: 'text-1', delta: 'lo' },
      { type: 'text-end', id: 'text-1' },
    ]);
  });

  it('AIS-14 continues several open blocks, by their number and kind', () => {
    const shown = [
      step,
      { type: 'text-start', id: 'text-1' },
      { type: 'reasoning-start', id: 'reasoning-1' },
      { type: 'text-start', id: 'text-2' },
      { type: 'text-delta', id: 'text-2', delta: 'b' },
    ];
    const own = [step, ...textOf('0', 'a'), ...textOf('1', 'bc')];
    expect(deltas(written(shown, own))).toEqual([
      ['text-1', 'a'],
      ['text-2', 'c'],
    ]);
  });

  it.each([
    ['another text', textOf('0', 'Hi'), []],
    ['a shorter text', textOf('0', 'Hel'), []],
    ['a longer text than one that has ended', textOf('0', 'Hello you'), []],
    ['another source', textOf('0', 'Hello'), [{ type: 'source-url', sourceId: 's', url: 'b' }]],
    ['another tool input', textOf('0', 'Hello'), [callOf('c', { q: 2 })]],
    ['another tool', textOf('0', 'Hello'), [{ ...callOf('c', { q: 1 }), toolName: 'other' }]],
  ])('AIS-14 replaces the current step at %s', (_, text, others) => {
    const shown = [
      start,
      step,
      ...textOf('text-1', 'Hello'),
      { type: 'source-url', sourceId: 's', url: 'a' },
      callOf('c', { q: 1 }),
    ];
    const result = written(shown, [start, step, ...text, ...others]);
    expect(result).toEqual([{ type: UI_RESET }, ...textOf('text-2', text[1].delta as string), ...others]);
  });

  it('AIS-14 replaces the current step if a block ends before the shown text, which is open', () => {
    const shown = [step, ...textOf('text-1', 'Hello').slice(0, 2)];
    expect(written(shown, [step, ...textOf('0', 'Hel')])).toEqual([{ type: UI_RESET }, ...textOf('text-2', 'Hel')]);
  });

  it.each([
    ['text', textOf('text-2', 'a')],
    ['source', [{ type: 'source-url', sourceId: 's', url: 'a' }]],
    ['call', [callOf('c', {})]],
  ])('AIS-14 replaces the current step at its end if a %s is missing', (_, rest) => {
    const own = [start, step, ...textOf('0', 'a'), stepEnd, finish];
    const shown = [start, step, ...textOf('text-1', 'a'), ...rest];
    const { parts } = fold([...shown, ...written(shown, own)]);
    expect(parts).toEqual([{ type: 'step-start' }, { type: 'text', text: 'a', state: 'done' }]);
    expect(written(shown, own).filter(isReset)).toHaveLength(1);
    expect(written(shown, own).at(-1)).toEqual(finish);
  });

  it('AIS-14 does not take parallel tools in another order for another answer', () => {
    const calls = [start, step, callOf('a', { q: 1 }), callOf('b', { q: 2 })];
    const shown = [...calls, outputOf('b', 2)];
    expect(written(shown, [...calls, outputOf('a', 1), outputOf('b', 2), stepEnd])).toEqual([
      outputOf('a', 1),
      stepEnd,
    ]);
    const reversed = [start, step, callOf('b', { q: 2 }), callOf('a', { q: 1 }), outputOf('b', 2)];
    expect(written(shown, reversed)).toEqual([]);
  });

  it('AIS-14 never takes a tool call back to an earlier state', () => {
    const shown = [start, step, callOf('a', {}), { ...outputOf('a', 1), preliminary: true }, outputOf('a', 2)];
    const own = [
      start,
      step,
      { type: 'tool-input-start', toolCallId: 'a', toolName: 'tool' },
      { type: 'tool-input-delta', toolCallId: 'a', inputTextDelta: '{}' },
      callOf('a', {}),
      { type: 'tool-approval-request', toolCallId: 'a', approvalId: 'new' },
      { ...outputOf('a', 0), preliminary: true },
      outputOf('a', 2),
    ];
    expect(written(shown, own)).toEqual([]);
  });

  it('AIS-14 continues the input of a tool call', () => {
    const inputStart = { type: 'tool-input-start', toolCallId: 'a', toolName: 'tool' };
    const delta = (inputTextDelta: string) => ({ type: 'tool-input-delta', toolCallId: 'a', inputTextDelta });
    const shown = [step, inputStart, delta('{"q":')];
    expect(written(shown, [step, inputStart, delta('{"q":1}')])).toEqual([delta('1}')]);
    expect(written(shown, [step, inputStart, delta('{"x"')])).toEqual([{ type: UI_RESET }, inputStart, delta('{"x"')]);
    expect(written(shown, [step, callOf('a', { q: 1 })])).toEqual([callOf('a', { q: 1 })]);
  });

  it('AIS-14 replaces a tool result that differs, without a reset', () => {
    const shown = [start, step, callOf('a', {}), { type: 'tool-output-error', toolCallId: 'a', errorText: 'busy' }];
    expect(written(shown, [start, step, callOf('a', {}), outputOf('a', 1)])).toEqual([outputOf('a', 1)]);
  });

  it('AIS-16 refers to an approval by the id that clients have', async () => {
    const shown = [
      start,
      step,
      callOf('a', {}),
      { type: 'tool-approval-request', toolCallId: 'a', approvalId: 'old' },
      finish,
    ];
    const own = [...shown.slice(0, 3), { ...shown[3], approvalId: 'new' }, finish, start];
    const answer = { type: 'tool-approval-response', approvalId: 'new', approved: true };
    const rest = written(shown, [...own, answer]);
    expect(rest).toEqual([start, { ...answer, approvalId: 'old' }]);
    const { parts } = await client7([...shown, ...rest]);
    expect(parts[1]).toMatchObject({ state: 'approval-responded', approval: { id: 'old', approved: true } });
  });

  it('AIS-14 updates the provider metadata of a block that an earlier attempt has begun', () => {
    const shown = [step, { type: 'reasoning-start', id: 'reasoning-1', providerMetadata: { p: { item: 1 } } }];
    const own = [
      step,
      { type: 'reasoning-start', id: 'x', providerMetadata: { p: { item: 2 } } },
      { type: 'reasoning-end', id: 'x' },
    ];
    expect(written(shown, own)).toEqual([
      { type: 'reasoning-end', id: 'reasoning-1', providerMetadata: { p: { item: 2 } } },
    ]);
    const ended = [...shown, { type: 'reasoning-end', id: 'reasoning-1' }];
    expect(written(ended, own)[0]).toEqual({ type: UI_RESET });
    const without = [step, { type: 'reasoning-start', id: 'x' }, { type: 'reasoning-end', id: 'x' }];
    expect(written(shown, without)[0]).toEqual({ type: UI_RESET });
  });

  it('AIS-14 writes data that differs, updates with an id once, and data without an id once', () => {
    const shown = [start, step, { type: 'data-a', id: '1', data: 1 }, { type: 'data-b', data: 1 }];
    const own = [
      start,
      step,
      { type: 'data-a', id: '1', data: 1 },
      { type: 'data-a', id: '1', data: 2 },
      { type: 'data-b', data: 2 },
      { type: 'data-b', data: 3 },
    ];
    expect(written(shown, own)).toEqual([own[3], own[5]]);
  });

  it('AIS-14 recognizes data that comes in another step or order', () => {
    const [a, b, c] = [{ id: '1' }, { id: '2' }, {}].map((id, data) => ({ type: 'data-a', ...id, data }));
    expect(written([start, a, b, c, step], [start, step, c, b, a, finish])).toEqual([finish]);
  });

  it('AIS-14 writes data and metadata of earlier steps that differ at the end of the last step', () => {
    const data = (value: number) => ({ type: 'data-a', id: '1', data: value });
    const steps = (value: number) => [
      { ...start, messageMetadata: { value } },
      step,
      data(value),
      stepEnd,
      step,
      ...textOf('text-1', 'a'),
    ];
    expect(written(steps(1), steps(2))).toEqual([]);
    expect(written(steps(1), [...steps(2), finish])).toEqual([
      data(2),
      { type: 'message-metadata', messageMetadata: { value: 2 } },
      finish,
    ]);
  });

  it('AIS-14 restores data that a replaced step has updated', () => {
    const data = (value: number) => ({ type: 'data-a', id: '1', data: value });
    const shown = [start, step, data(1), stepEnd, step, data(2), ...textOf('text-1', 'a')];
    const own = [start, step, data(1), stepEnd, step, ...textOf('0', 'b'), finish];
    expect(written(shown, own)).toEqual([{ type: UI_RESET }, ...textOf('text-2', 'b'), data(1), finish]);
  });

  it('AIS-14 writes transient data once', () => {
    const data = { type: 'data-a', data: 1, transient: true };
    const kept = { type: 'data-a', id: '1', data: 1 };
    expect(written([start, kept, data], [start, kept, data, data])).toEqual([data]);
  });

  it('AIS-14 writes errors and aborts, and drops chunks that refer to nothing', () => {
    const own = [{ type: 'error', errorText: 'a' }, { type: 'abort' }, { type: 'text-delta', id: 'x', delta: 'a' }];
    expect(written([], [...own, { type: 'unknown' }])).toEqual(own.slice(0, 2));
  });

  it('AIS-14 keeps what is the same after a reset by the model loop', () => {
    const own = [start, step, ...textOf('0', 'a'), { type: 'reset-step' }, ...textOf('1', 'a')];
    expect(written([], own)).toEqual([start, step, ...textOf('text-1', 'a')]);
    expect(written([], [...own.slice(0, -3), ...textOf('1', 'b')])).toEqual([
      start,
      step,
      ...textOf('text-1', 'a'),
      { type: UI_RESET },
      ...textOf('text-2', 'b'),
    ]);
  });

  it('AIS-14 replaces the last step even if it has finished', () => {
    const shown = [start, step, ...textOf('text-1', 'a'), stepEnd];
    expect(written(shown, [start, step, ...textOf('0', 'b'), stepEnd])).toEqual([
      { type: UI_RESET },
      ...textOf('text-2', 'b'),
      stepEnd,
    ]);
  });

  it.each([
    ['another text', 1, 'text', [step, ...textOf('0', 'b')]],
    ['another part', 1, 'file', [step, { type: 'file', url: 'a', mediaType: 'image/png' }]],
    ['a missing part', 1, 'text', [step, stepEnd, step]],
    ['an earlier end', 1, 'step-start', [step, ...textOf('0', 'a'), stepEnd, finish]],
  ])('AIS-14 rejects %s in a step after which another one was shown', (_, number, partType, own) => {
    const shown = [start, step, ...textOf('text-1', 'a'), stepEnd, step];
    const attempt = () => written(shown, [start, ...own]);
    expect(attempt).toThrow(AnswerError);
    expect(attempt).toThrow(
      expect.objectContaining({ code: 'FINISHED_STEP_CHANGED', step: number, partType }) as Error,
    );
  });

  it('AIS-16 rejects another answer before a wait that was shown', () => {
    const shown = [start, step, ...textOf('text-1', 'a'), finish];
    expect(() => written(shown, [start, step, ...textOf('0', 'b')])).toThrow(AnswerError);
  });

  it.each([
    ['data with ids', (n: number) => [{ type: 'data-a', id: `${n}`, data: n }]],
    ['data without ids', (n: number) => [{ type: 'data-a', data: n }]],
    ['blocks', (n: number) => textOf(`${n}`, 'a')],
    [
      'deltas among data',
      (n: number) => [
        { type: 'data-a', data: n },
        { type: 'text-delta', id: 'a', delta: 'a' },
      ],
    ],
  ])('AIS-14 costs linear time for %s, new or shown', (_, chunksOf) => {
    expectLinear((size) => {
      const answer = [start, step, textOf('a', '')[0], ...Array.from({ length: size }, (__, n) => chunksOf(n)).flat()];
      return () => {
        const shown = written([], answer);
        expect(written(shown, answer)).toEqual([]);
      };
    }, 100);
  });

  it('AIS-14 rejects a chunk that is not JSON', () => {
    const chunk = { type: 'data-a', data: new Date() };
    expect(() => new ChunkFilter([]).write(chunk)).toThrow(expect.objectContaining({ path: 'chunk.data' }) as Error);
  });
});

const ONCE = [
  'start',
  'finish',
  'start-step',
  'finish-step',
  'text-start',
  'reasoning-start',
  'source-url',
  'file',
  'tool-input-available',
  'tool-output-error',
];

function run(attempts: readonly Attempt[], hasSteps = true): Turn {
  return runTurn(attempts, (stored) => new ChunkFilter(stored), hasSteps);
}

function written(shown: readonly UIChunk[], own: readonly UIChunk[]): UIChunk[] {
  const filter = new ChunkFilter(shown);
  return own.flatMap((chunk) => filter.write(chunk));
}

function isReset({ type }: UIChunk): boolean {
  return type === UI_RESET;
}

function lengthOf(chunks: readonly UIChunk[], field: string): number {
  return chunks.map((chunk) => (chunk[field] as string | undefined) ?? '').join('').length;
}

function deltas(chunks: readonly UIChunk[]): unknown[] {
  return chunks.filter(({ type }) => type === 'text-delta').map(({ id, delta }) => [id, delta]);
}

function textOf(id: string, text: string): UIChunk[] {
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
    { type: 'text-end', id },
  ];
}

function callOf(toolCallId: string, input: unknown): UIChunk {
  return { type: 'tool-input-available', toolCallId, toolName: 'tool', input };
}

function outputOf(toolCallId: string, output: unknown): UIChunk {
  return { type: 'tool-output-available', toolCallId, output };
}
