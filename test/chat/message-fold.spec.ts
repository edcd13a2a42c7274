import fc from 'fast-check';
import { MessageFold, UI_RESET } from '../../lib/chat/message-fold.js';
import { as7, client6, client7, fold } from './clients.js';
import { randomChunks } from './random-chunks.js';

describe('MessageFold', () => {
  it('AIS-14 has the message of a client of ai 6, for any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(randomChunks(6, 'reset-step'), async (chunks) => {
        expect(jsonOf(fold(chunks))).toEqual(jsonOf(as7(await client6(chunks))));
      }),
      { numRuns: 80 },
    );
  });

  it('AIS-14 has the message of a client of ai 7, for any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(randomChunks(7, 'reset-step'), async (chunks) => {
        expect(jsonOf(fold(chunks))).toEqual(jsonOf(await client7(chunks)));
      }),
      { numRuns: 80 },
    );
  });

  it('AIS-14 merges metadata as clients of ai 6 and 7 do', async () => {
    const metadata = fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue({ maxDepth: 2 }));
    await fc.assert(
      fc.asyncProperty(fc.array(metadata, { minLength: 1, maxLength: 4 }), async (changes) => {
        const chunks = changes.map((messageMetadata) => ({ type: 'message-metadata', messageMetadata }));
        expect(fold(chunks)).toEqual(await client6(chunks));
        expect(fold(chunks)).toEqual(await client7(chunks));
      }),
    );
  });

  it('AIS-14 removes the parts of the current step at a stored reset, as at that of ai 7', () => {
    fc.assert(
      fc.property(randomChunks(7, 'reset-step'), (chunks) => {
        const stored = chunks.map((chunk) => (chunk.type === 'reset-step' ? { type: UI_RESET } : chunk));
        expect(fold(stored)).toEqual(fold(chunks));
      }),
    );
  });

  it('AIS-14 ignores chunks that refer to a removed or unknown block or call', () => {
    const chunks = [
      { type: 'text-start', id: 'a' },
      { type: UI_RESET },
      { type: 'file', url: 'u', mediaType: 'image/png' },
      { type: 'text-delta', id: 'a', delta: 'x' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'tool-approval-response', approvalId: 'b', approved: true },
      { type: 'unknown' },
    ];
    expect(fold(chunks).parts).toEqual([chunks[2]]);
  });

  it('AIS-14 begins another message at a start with another id', async () => {
    const chunks = ['a', 'b'].flatMap((id) => [
      { type: 'start', messageId: id, messageMetadata: { [id]: 1 } },
      { type: 'file', url: id, mediaType: 'image/png' },
    ]);
    expect(fold(chunks)).toEqual({ id: 'b', role: 'assistant', metadata: { b: 1 }, parts: [chunks[3]] });
    expect(fold(chunks)).toEqual(await client7(chunks));
  });

  it('AIS-14 returns messages that later chunks do not change', () => {
    const result = new MessageFold();
    result.add({ type: 'text-start', id: 'a' });
    const { parts } = result.message;
    result.add({ type: 'text-delta', id: 'a', delta: 'x' });
    result.add({ type: 'text-end', id: 'a' });
    expect(parts).toEqual([{ type: 'text', text: '', state: 'streaming' }]);
  });
});

function jsonOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
