import { type UIMessageChunk as Chunk6 } from 'ai';
import { type UIMessageChunk as Chunk7 } from '../ai-7/ai.js';
import fc from 'fast-check';
import { UI_RESET } from '../../lib/chat/message-fold.js';
import { toProtocol, withoutAnswered } from '../../lib/chat/protocol-chunks.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { client6, client7 } from './clients.js';
import { randomChunks } from './random-chunks.js';

/** The compiler checks that no type of the SDK is missing. */
type TypesOf<Chunk extends { type: string }> = Record<Exclude<Chunk['type'], `data-${string}`>, true>;

const TYPES_6: TypesOf<Chunk6> = {
  'text-start': true,
  'text-delta': true,
  'text-end': true,
  'reasoning-start': true,
  'reasoning-delta': true,
  'reasoning-end': true,
  error: true,
  'tool-input-available': true,
  'tool-input-error': true,
  'tool-approval-request': true,
  'tool-output-available': true,
  'tool-output-error': true,
  'tool-output-denied': true,
  'tool-input-start': true,
  'tool-input-delta': true,
  'source-url': true,
  'source-document': true,
  file: true,
  'start-step': true,
  'finish-step': true,
  start: true,
  finish: true,
  abort: true,
  'message-metadata': true,
};
const TYPES_7: TypesOf<Chunk7> = {
  ...TYPES_6,
  custom: true,
  'reasoning-file': true,
  'steering-message': true,
  'tool-approval-response': true,
  'reset-step': true,
};

describe('toProtocol', () => {
  it.each([
    [6 as const, TYPES_6],
    [7 as const, TYPES_7],
  ])('AIS-14 keeps all types that the client of ai %i accepts, and data', (protocol, types) => {
    const chunks = [...Object.keys(types), 'data-a'].map((type) => ({ type }));
    expect(toProtocol(chunks, protocol)).toEqual({ chunks, isCut: false });
  });

  it.each([6, 7] as const)('AIS-14 drops types that the client of ai %i does not accept', (protocol) => {
    const unknown = Object.keys(TYPES_7).filter((type) => protocol === 6 && !(type in TYPES_6));
    const chunks = [...unknown, 'attempt', 'settled', 'data'].map((type) => ({ type }));
    expect(toProtocol(chunks, protocol)).toEqual({ chunks: [], isCut: false });
  });

  it('AIS-14 gives clients of ai 6 no chunk that they reject, whatever is stored', async () => {
    await fc.assert(
      fc.asyncProperty(randomChunks(7, 'custom'), async (chunks) => {
        await client6(toProtocol(chunks, 6).chunks);
      }),
      { numRuns: 50 },
    );
  });

  it('AIS-14 turns a stored reset into one of ai 7', async () => {
    const stored: UIChunk[] = [{ type: 'start-step' }, source('a'), { type: UI_RESET }, source('b')];
    const { chunks, isCut } = toProtocol(stored, 7);
    expect(isCut).toBe(false);
    expect((await client7(chunks)).parts).toMatchObject([{ type: 'step-start' }, { url: 'b' }]);
  });

  it('AIS-14 ends at a stored reset for clients of ai 6', () => {
    const stored: UIChunk[] = [source('a'), { type: UI_RESET }, source('b')];
    expect(toProtocol(stored, 6)).toEqual({ chunks: [source('a')], isCut: true });
  });

  it('AIS-14 replaces finish reasons that clients of ai 6 do not accept', async () => {
    const finish: UIChunk = { type: 'finish', finishReason: 'interrupted', messageMetadata: { a: 1 } };
    await expect(client6([finish])).rejects.toThrow('does not accept');
    expect(toProtocol([finish], 7).chunks).toEqual([finish]);
    const { chunks } = toProtocol([finish, { type: 'finish', finishReason: 'stop' }, { type: 'finish' }], 6);
    expect(chunks).toEqual([
      { ...finish, finishReason: 'other' },
      { type: 'finish', finishReason: 'stop' },
      { type: 'finish' },
    ]);
    await client6(chunks);
  });
});

describe('withoutAnswered', () => {
  const request = (call: string): UIChunk => ({ type: 'tool-approval-request', toolCallId: call, approvalId: call });
  const answer = (call: string, approved = true): UIChunk => ({
    type: 'tool-approval-response',
    approvalId: call,
    approved,
  });
  const output = (call: string): UIChunk => ({ type: 'tool-output-available', toolCallId: call, output: 1 });

  it('AIS-32 removes requests for approvals that have an answer, until the call has an output', () => {
    expect(withoutAnswered([request('a'), answer('a')])).toEqual([answer('a')]);
    const ended = [request('a'), answer('a'), output('a')];
    expect(withoutAnswered(ended)).toEqual(ended);
    const denied = [request('a'), answer('a', false)];
    expect(withoutAnswered(denied)).toEqual([answer('a', false)]);
  });

  it('AIS-32 keeps all requests while one has no answer, also one with the id of an earlier call', () => {
    for (const pending of ['b', 'a']) {
      const chunks = [request('a'), answer('a'), ...(pending === 'a' ? [output('a')] : []), request(pending)];
      expect(withoutAnswered(chunks)).toEqual(chunks);
    }
  });
});

function source(url: string): UIChunk {
  return { type: 'source-url', sourceId: url, url };
}
