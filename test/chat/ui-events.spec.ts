import { type TurnEvent } from 'nestjs-agent-sessions';
import fc from 'fast-check';
import { chunksOf, toUIEvents, UIEventReader } from '../../lib/chat/ui-events.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';

/** The maximum size of an event's data. */
const MAX_BYTES = 65_536;

/** Characters of each length in UTF-8 and in JSON. */
const text = fc
  .tuple(fc.constantFrom('a', '"', '\\', '\u0001', 'Ä', '€', '😀', '\ud83d'), fc.integer({ min: 0, max: 40_000 }))
  .map(([character, count]) => character.repeat(count));
const chunk: fc.Arbitrary<UIChunk> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('text-delta'), id: fc.constant('t'), delta: fc.string() }) },
  fc.record({ type: fc.constant('tool-output-available'), toolCallId: fc.constant('c'), output: text }),
);

function eventsOf(chunks: readonly UIChunk[]): TurnEvent[] {
  return chunks.flatMap(toUIEvents).map((event, index) => ({ ...event, offset: index + 1 }) as TurnEvent);
}

describe('UIEventReader', () => {
  it('AIS-14 restores all chunks from events of a limited size', () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 5 }), (chunks) => {
        const events = eventsOf(chunks);
        for (const { data } of events) expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThanOrEqual(MAX_BYTES);
        expect(chunksOf(events)).toEqual(chunks);
      }),
    );
  });

  it('AIS-14 stores a usual chunk as one event', () => {
    const delta = { type: 'text-delta', id: 't', delta: 'a'.repeat(8192) };
    expect(toUIEvents(delta)).toEqual([{ type: 'ui', data: delta }]);
  });

  it('AIS-14 reads a large chunk event by event, next to other events', () => {
    const large = { type: 'tool-output-available', toolCallId: 'c', output: 'a'.repeat(100_000) };
    const events = eventsOf([large]);
    const reader = new UIEventReader();
    const read = events.flatMap((event) => [reader.read(event), reader.read({ type: 'progress', data: 'Half of it' })]);
    expect(read.filter((value) => value !== undefined)).toEqual([large]);
    expect(read.at(-2)).toEqual(large);
  });

  it.each([null, 'text', 7, [], {}])('AIS-34 ignores events of a handler that uses the same type: %j', (data) => {
    expect(new UIEventReader().read({ type: 'ui', data })).toBeUndefined();
  });

  it('AIS-14 skips a chunk in which an attempt has ended', () => {
    fc.assert(
      fc.property(fc.array(chunk, { minLength: 1, maxLength: 3 }), fc.array(chunk), fc.nat(), (first, next, nat) => {
        const events = eventsOf(first);
        const cut = events.slice(0, nat % events.length);
        const restart: TurnEvent = { type: 'attempt', data: { attempt: 2 }, offset: 0 };
        const whole = chunksOf(cut);
        expect(whole).toEqual(first.slice(0, whole.length));
        expect(chunksOf([...cut, restart, ...eventsOf(next)])).toEqual([...whole, ...next]);
      }),
    );
  });
});
