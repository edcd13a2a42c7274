import { type EmittedEvent, type TurnEvent } from '../../lib/ledger/turn-event.js';
import { chunksOf } from '../../lib/chat/ui-events.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { streamReplyText, uiStream, type UITurn } from '../../lib/chat/ui-stream.js';

/** A turn that keeps its events in memory. */
class MemoryTurn {
  readonly events: TurnEvent[] = [];

  /** Returns the handlers' turns in a new attempt, by their iterations. */
  attempt(...iterations: readonly number[]): UITurn[] {
    const emit = async (event: EmittedEvent): Promise<void> => {
      this.events.push({ ...event, offset: this.events.length + 1 } as TurnEvent);
      await Promise.resolve();
    };
    return iterations.map((iteration) => ({
      id: 'turn-1',
      iteration,
      emit,
      emitted: () => Promise.resolve([...this.events]),
    }));
  }

  get chunks(): UIChunk[] {
    return chunksOf(this.events);
  }
}

function answer(text: string): UIChunk[] {
  return [
    { type: 'start' },
    { type: 'start-step' },
    { type: 'text-start', id: 'txt-0' },
    { type: 'text-delta', id: 'txt-0', delta: text },
    { type: 'text-end', id: 'txt-0' },
    { type: 'finish-step' },
    { type: 'finish' },
  ];
}

async function write(turn: UITurn, chunks: readonly UIChunk[]): Promise<void> {
  const ui = await uiStream(turn);
  for (const chunk of chunks) await ui.write(chunk);
}

function textsIn({ chunks }: MemoryTurn): unknown[] {
  return chunks.flatMap(({ delta }) => delta ?? []);
}

describe('uiStream', () => {
  it('AIS-14 writes only what goes beyond earlier attempts, under the id of the turn', async () => {
    const stored = new MemoryTurn();
    const [first] = stored.attempt(0);
    await write(first, answer('Hello.').slice(0, 4));
    const count = stored.events.length;
    const [second] = stored.attempt(0);
    await write(second, answer('Hello. Bye.'));
    expect(stored.chunks[0]).toEqual({ type: 'start', messageId: 'turn-1' });
    expect(stored.chunks.slice(count)).toEqual([
      { type: 'text-delta', id: 'text-1', delta: ' Bye.' },
      { type: 'text-end', id: 'text-1' },
      { type: 'finish-step' },
      { type: 'finish' },
    ]);
    expect((await uiStream(second)).message).toMatchObject({
      id: 'turn-1',
      parts: [{ type: 'step-start' }, { type: 'text', text: 'Hello. Bye.', state: 'done' }],
    });
  });

  it('AIS-14 keeps concurrent large chunks apart', async () => {
    const stored = new MemoryTurn();
    const [turn] = stored.attempt(0);
    const data = ['a', 'b', 'c'].map((letter) => letter.repeat(100_000));
    await Promise.all(data.map((each) => write(turn, [{ type: 'data-file', data: each }])));
    expect(stored.chunks).toEqual([
      { type: 'start', messageId: 'turn-1' },
      ...data.map((each) => ({ type: 'data-file', data: each })),
    ]);
  });

  it.each([{}, { transient: true }])('AIS-14 begins with the id of the turn, before data %j', async (options) => {
    const stored = new MemoryTurn();
    const data = { type: 'data-progress', id: 'p', data: 1, ...options };
    for (const attempt of [1, 2]) {
      const [turn] = stored.attempt(0);
      await write(turn, [data, ...answer('Hello.')]);
      expect(stored.chunks.slice(0, 2)).toEqual([{ type: 'start', messageId: 'turn-1' }, data]);
      const parts = (await uiStream(turn)).message.parts.map(({ type }) => type);
      expect([attempt, ...parts]).toEqual([attempt, ...(options.transient ? [] : [data.type]), 'step-start', 'text']);
    }
    const ends = stored.chunks.filter(({ type }) => type === 'finish');
    expect(ends).toHaveLength(1);
  });

  it('AIS-14 writes a reply after other chunks once, and nothing if there are none', async () => {
    const stored = new MemoryTurn();
    for (const _ of [1, 2]) {
      const [turn] = stored.attempt(0);
      expect(await streamReplyText(turn, 'Hello.')).toBeUndefined();
      await write(turn, [{ type: 'data-progress', data: 1 }]);
      const parts = [{ type: 'data-progress', data: 1 }, { type: 'step-start' }, { type: 'text', text: 'Hello.' }];
      expect((await streamReplyText(turn, 'Hello.'))?.content).toMatchObject(parts);
      expect(textsIn(stored)).toEqual(['Hello.']);
    }
  });

  it('AIS-14 replaces the reply after an answer that failed, if the next attempt has an answer', async () => {
    const stored = new MemoryTurn();
    const [first] = stored.attempt(0);
    await write(first, answer('Hel').slice(0, 4));
    expect((await streamReplyText(first, 'Sorry.'))?.content).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'Hel', state: 'done' },
      { type: 'text', text: 'Sorry.', state: 'done' },
    ]);
    const [second] = stored.attempt(0);
    await write(second, answer('Hello.'));
    expect((await uiStream(second)).message.parts).toMatchObject([{ type: 'step-start' }, { text: 'Hello.' }]);
  });

  it('AIS-14 adds no reply to an answer with an end, with the same text, or of a parallel handler', async () => {
    const stored = new MemoryTurn();
    const [one, two] = stored.attempt(0, 0);
    await write(one, answer('Hello.').slice(0, -1));
    expect(await streamReplyText(one, 'Hello.')).toBeDefined();
    expect(await streamReplyText(two, 'Hi.')).toBeUndefined();
    await write(one, answer('Hello.').slice(-1));
    expect(await streamReplyText(one, 'Bye.')).toBeUndefined();
    expect(textsIn(stored)).toEqual(['Hello.']);
  });

  it('AIS-14 adds the reply of a later iteration', async () => {
    const stored = new MemoryTurn();
    const [first, second] = stored.attempt(0, 1);
    await write(first, answer('Hello.'));
    expect((await streamReplyText(second, 'Bye.'))?.content).toMatchObject([{ type: 'step-start' }, { text: 'Bye.' }]);
    expect(textsIn(stored)).toEqual(['Hello.', 'Bye.']);
  });

  it('AIS-14 compares each iteration with the same one of earlier attempts', async () => {
    const stored = new MemoryTurn();
    const first = stored.attempt(0, 1);
    await write(first[0], answer('One.'));
    await write(first[1], answer('Two.').slice(0, 4));
    // The first iteration is stored, so that only the second one runs again.
    const [second, third] = stored.attempt(1, 2);
    await write(second, answer('Two.'));
    await write(third, answer('Three.'));
    expect(stored.chunks.flatMap(({ delta }) => delta ?? [])).toEqual(['One.', 'Two.', 'Three.']);
    expect(stored.chunks.filter(({ type }) => type === 'finish')).toHaveLength(3);
    expect((await uiStream(third)).message.parts).toMatchObject([{}, { text: 'Three.' }]);
  });

  it('AIS-14 rejects a second handler in the same iteration', async () => {
    const [one, two] = new MemoryTurn().attempt(0, 0);
    const ui = await uiStream(one);
    await expect(uiStream(two)).rejects.toMatchObject({ code: 'PARALLEL_ANSWERS' });
    expect(await uiStream(one)).toBe(ui);
  });
});
