import fc from 'fast-check';
import { ChunkFilter } from '../../lib/chat/chunk-filter.js';
import { UI_RESET } from '../../lib/chat/message-fold.js';
import { type Protocol, toProtocol } from '../../lib/chat/protocol-chunks.js';
import { replay, segmentsOf } from '../../lib/chat/replay.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { CLIENTS, comparable, fold, inOrder } from './clients.js';
import { differentAttempts, runTurn } from './random-answers.js';
import { randomChunks } from './random-chunks.js';

const turns = fc
  .tuple(differentAttempts, fc.boolean())
  .map(([attempts, hasSteps]) => runTurn(attempts, (stored) => new ChunkFilter(stored), hasSteps));

describe('replay', () => {
  it('AIS-14 gives the message of all chunks, for any chunks', () => {
    fc.assert(
      fc.property(randomChunks(7, UI_RESET), (chunks) => {
        const replayed = replay(chunks);
        expect(fold(replayed)).toEqual(fold(chunks));
        expect(replay(replayed)).toEqual(replayed);
        expect(replayed.length).toBeLessThanOrEqual(chunks.length);
      }),
      { numRuns: 100 },
    );
  });

  it('AIS-14 contains no reset, error or transient data, one start, and a finish at the end only', () => {
    fc.assert(
      fc.property(randomChunks(7, UI_RESET), (chunks) => {
        const replayed = replay(chunks);
        const types = replayed.map(({ type }) => type);
        expect(types).not.toEqual(expect.arrayContaining([UI_RESET]));
        expect(types).not.toEqual(expect.arrayContaining(['error']));
        expect(replayed.filter(({ transient }) => transient)).toEqual([]);
        expect(types.lastIndexOf('start')).toBe(0);
        expect([-1, types.length - 1]).toContain(types.indexOf('finish'));
        expect(types.includes('finish')).toBe(chunks.at(-1)?.type === 'finish');
      }),
      { numRuns: 50 },
    );
  });

  it.each([6, 7] as const)('AIS-14 gives clients of ai %i the message of the last attempt', async (protocol) => {
    const client = CLIENTS[protocol];
    await fc.assert(
      fc.asyncProperty(turns, async ({ own, stored }) => {
        const undisturbed = writtenOnce(own);
        const replayed = sent(replay(stored), protocol);
        expect(replayed.length).toBeLessThanOrEqual(undisturbed.length);
        expect(inOrder(await client(replayed))).toEqual(inOrder(await client(sent(undisturbed, protocol))));
      }),
      { numRuns: 60 },
    );
  });

  it.each([6, 7] as const)('AIS-17 lets clients of ai %i continue with the chunks that follow', async (protocol) => {
    const client = CLIENTS[protocol];
    await fc.assert(
      fc.asyncProperty(turns, fc.nat(), async ({ stored }, at) => {
        // A client of version 6 resumes again after each reset.
        const first = protocol === 6 ? stored.findLastIndex(({ type }) => type === UI_RESET) + 1 : 0;
        const cut = first + (at % (stored.length - first + 1));
        const live = sent([...replay(stored.slice(0, cut)), ...stored.slice(cut)], protocol);
        expect(comparable(await client(live))).toEqual(comparable(await client(sent(replay(stored), protocol))));
      }),
      { numRuns: 60 },
    );
  });
});

describe('replay of one part', () => {
  const call = { toolCallId: 'c', toolName: 'search' };

  it('AIS-14 merges deltas, also of parallel blocks', () => {
    const [start, delta, end] = textOf('text-1', 'Hello');
    const [start2, delta2, end2] = textOf('text-2', 'Hm');
    const stored = [start, { ...delta, delta: 'Hel' }, start2, delta2, { ...delta, delta: 'lo' }, end, end2];
    expect(replay(stored)).toEqual([start, delta, start2, delta2, end, end2]);
  });

  it('AIS-14 leaves out superseded states of a tool call', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c' };
    const stored = [
      { type: 'tool-input-start', ...call, title: 'Search', inputEncoding: 'json' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q"' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: ':1}' },
    ];
    expect(replay(stored)).toEqual([stored[0], { ...stored[2], inputTextDelta: '{"q":1}' }]);
    const available = { type: 'tool-input-available', ...call, input: { q: 1 } };
    const preliminary = { ...output, output: 1, preliminary: true, providerExecuted: true };
    expect(replay([...stored, available, preliminary, { ...output, output: 2 }])).toEqual([
      { ...available, title: 'Search' },
      { ...output, output: 2, providerExecuted: true },
    ]);
  });

  it('AIS-14 keeps the latest version of data and metadata', () => {
    const data = (value: number) => ({ type: 'data-a', id: '1', data: value });
    const metadata = (value: unknown) => ({ type: 'message-metadata', messageMetadata: value });
    const stored = [{ type: 'start', messageId: 'turn' }, data(1), metadata({ a: { b: 1 } }), data(2)];
    expect(replay([...stored, metadata({ a: { c: 2 } })])).toEqual([
      { type: 'start', messageId: 'turn', messageMetadata: { a: { b: 1, c: 2 } } },
      data(2),
    ]);
  });

  it('AIS-14 keeps the result of a call of an earlier step when a step is replaced', () => {
    const available = { type: 'tool-input-available', ...call, input: {} };
    const step = { type: 'start-step' };
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
    const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const response = { type: 'tool-approval-response', approvalId: 'a', approved: true };
    const ofEarlierStep = [request, response, output];
    const ofStep = [available, ...ofEarlierStep].map((chunk) => ({
      ...chunk,
      ...('toolCallId' in chunk ? { toolCallId: 'd' } : {}),
      ...('approvalId' in chunk ? { approvalId: 'b' } : {}),
    }));
    const stored = [step, available, step, ...ofEarlierStep, ...ofStep, { type: UI_RESET }];
    expect(replay(stored)).toEqual([step, available, step, ...ofEarlierStep]);
  });

  it('AIS-14 leaves out the parts of an earlier response that are replaced', () => {
    const start = { type: 'start', messageId: 'turn' };
    const replaced = [...textOf('text-1', 'May I?'), { type: 'finish' }, start, ...textOf('text-2', 'I sent it.')];
    const others = [...textOf('text-3', 'May I?'), ...textOf('text-4', 'Sent.')];
    expect(replay([start, ...replaced, { type: UI_RESET }, ...others])).toEqual([start, ...others]);
  });
});

describe('segmentsOf', () => {
  const finish = { type: 'finish' };
  const [a, b, c] = ['a', 'b', 'c'].map((type) => ({ type }));

  it('AIS-14 ends a segment at each finish', () => {
    expect(segmentsOf([])).toEqual([]);
    expect(segmentsOf([a, b])).toEqual([[a, b]]);
    expect(segmentsOf([a, finish])).toEqual([[a, finish]]);
    expect(segmentsOf([a, finish, b, c, finish])).toEqual([
      [a, finish],
      [b, c, finish],
    ]);
  });
});

function writtenOnce(chunks: readonly UIChunk[]): UIChunk[] {
  const filter = new ChunkFilter([]);
  return chunks.flatMap((chunk) => filter.write(chunk));
}

function sent(chunks: readonly UIChunk[], protocol: Protocol): readonly UIChunk[] {
  const { chunks: accepted, isCut } = toProtocol(chunks, protocol);
  expect(isCut).toBe(false);
  return accepted;
}

function textOf(id: string, text: string): UIChunk[] {
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
    { type: 'text-end', id },
  ];
}
