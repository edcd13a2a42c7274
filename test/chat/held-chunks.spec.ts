import fc from 'fast-check';
import { HeldChunks } from '../../lib/chat/held-chunks.js';
import { UI_RESET } from '../../lib/chat/message-fold.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { fold } from './clients.js';
import { randomChunks } from './random-chunks.js';

/** The chunks that a client gets if those from `at` on are not shown live. */
function withHeld(chunks: readonly UIChunk[], at: number): UIChunk[] {
  const held = new HeldChunks();
  const late = chunks.slice(at).flatMap((chunk) => held.add(chunk));
  return [...chunks.slice(0, at), ...late, ...held.release()];
}

describe('HeldChunks', () => {
  it('AIS-34 gives clients the same message, wherever the answer ceases to be live', () => {
    fc.assert(
      fc.property(randomChunks(7, UI_RESET), fc.nat(), (chunks, at) => {
        const sent = withHeld(chunks, at % (chunks.length + 1));
        expect(fold(sent)).toEqual(fold(chunks));
        expect(sent.length).toBeLessThanOrEqual(chunks.length);
      }),
      { numRuns: 200 },
    );
  });

  it('AIS-34 holds text until the answer of the model is stored, and merges it', () => {
    const held = new HeldChunks();
    const delta = (text: string) => ({ type: 'text-delta', id: 't', delta: text });
    const call = { type: 'tool-input-available', toolCallId: 'c', toolName: 'find', input: {} };
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 'found' };
    expect(['a', 'b', 'c'].flatMap((text) => held.add(delta(text)))).toEqual([]);
    expect(held.add({ type: 'text-end', id: 't' })).toEqual([]);
    expect(held.add(call)).toEqual([delta('abc'), { type: 'text-end', id: 't' }, call]);
    expect(held.add({ ...output, preliminary: true, output: 'so far' })).toEqual([]);
    expect(held.add(output)).toEqual([{ ...output, preliminary: true, output: 'so far' }, output]);
    expect(held.add({ type: 'finish-step' })).toEqual([{ type: 'finish-step' }]);
    expect(held.release()).toEqual([]);
  });

  it('AIS-34 holds the calls of tools that the provider runs, which are parts of its answer', () => {
    const held = new HeldChunks();
    const chunk = { toolCallId: 'c', toolName: 'search', providerExecuted: true };
    const call = { type: 'tool-input-available', ...chunk, input: {} };
    expect(held.add(call)).toEqual([]);
    expect(held.add({ type: 'tool-output-available', ...chunk, output: 1 })).toEqual([]);
    expect(held.add({ type: 'finish-step' })).toHaveLength(3);
  });

  it('AIS-34 keeps a replaced step visible until its replacement is stored, and drops what no client has seen', () => {
    const held = new HeldChunks();
    const [start, delta] = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'x'.repeat(1000) },
    ];
    const reset = { type: UI_RESET };
    for (let n = 0; n < 100; n += 1) expect([start, delta, reset].flatMap((chunk) => held.add(chunk))).toEqual([]);
    expect([start, delta].flatMap((chunk) => held.add(chunk))).toEqual([]);
    const released = held.add({ type: 'finish-step' });
    expect(released.filter(({ type }) => type !== UI_RESET)).toEqual([start, delta, { type: 'finish-step' }]);
    expect(released[0]).toEqual(reset);
  });

  it('AIS-34 drops transient data, and keeps the latest version of other data', () => {
    const held = new HeldChunks();
    const data = (value: number) => ({ type: 'data-progress', id: 'p', data: value });
    for (const n of [1, 2, 3]) expect(held.add(data(n))).toEqual([]);
    expect(held.add({ ...data(4), transient: true })).toEqual([]);
    expect(held.release()).toEqual([data(3)]);
  });
});
