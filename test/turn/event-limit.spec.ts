import { defineOrchestrator, reply, type TurnContext, type TurnEvent } from 'nestjs-agent-sessions';
import { sizeOfEvents } from '../../lib/turn/turn-event-limit.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

const MAX_BYTES = 10_000;
/** Has 126 bytes as JSON. */
const EVENT = { type: 'delta', data: 'x'.repeat(100) };

describe.each(LIVE_STORES)('the limit of the events of a turn over $name', ({ open }) => {
  it('AIS-34 drops what exceeds it, logs that once, and completes the turn', async () => {
    const { events, warnings } = await run((turn) => {
      for (let n = 0; n < 500; n += 1) void turn.emit(EVENT);
    });
    const emitted = events.slice(0, -1);
    expect(sizeOfEvents(emitted)).toBeLessThanOrEqual(MAX_BYTES);
    expect(sizeOfEvents([...emitted, EVENT])).toBeGreaterThan(MAX_BYTES);
    expect(events.map(({ offset }) => offset)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)).toMatchObject({ type: 'settled', data: { status: 'awaiting-input', reply: 'done' } });
    expect(warnings).toEqual([
      expect.stringMatching(/^warn The events of turn \w+ have reached turns\.events\.maxBytes \(10000\)\. /),
    ]);
  });

  it('AIS-34 drops a small event that follows one which exceeds it', async () => {
    const { events } = await run((turn) => {
      for (const length of [5000, 6000, 1]) void turn.emit({ type: 'delta', data: 'x'.repeat(length) });
    });
    expect(events.map(({ data }) => (typeof data === 'string' ? data.length : 'settled'))).toEqual([5000, 'settled']);
  });

  it('AIS-34 counts the events of all attempts', async () => {
    const { events, warnings } = await run(async (turn) => {
      for (let n = 0; n < 50; n += 1) {
        void turn.emit(EVENT);
        // An attempt learns the size of the events before with its first batch.
        if (n === 0) await turn.flush();
      }
      if (turn.attempt < 5) throw new Error('again');
    });
    const emitted = events.filter(({ type }) => type === 'delta');
    expect(sizeOfEvents(emitted)).toBeGreaterThan(MAX_BYTES - 500);
    expect(sizeOfEvents(emitted)).toBeLessThan(MAX_BYTES + 5 * 200);
    expect(warnings).toHaveLength(4);
  });

  it('AIS-34 counts the events that an attempt has read itself', async () => {
    const { events } = await run(async (turn) => {
      await turn.emitted();
      for (let n = 0; n < 100; n += 1) void turn.emit(EVENT);
      if (turn.attempt < 3) throw new Error('again');
    });
    expect(sizeOfEvents(events.slice(0, -1))).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('AIS-34 stores the events of an attempt that cannot count those of earlier ones', async () => {
    const adapter = open();
    const read = adapter.events.read.bind(adapter.events);
    const { events, errors } = await run(async (turn) => {
      if (turn.attempt === 1) {
        await turn.emit({ type: 'delta', data: 1 });
        throw new Error('again');
      }
      adapter.events.read = () => Promise.reject(new Error('The events are unreadable.'));
      for (const data of [2, 3]) {
        void turn.emit({ type: 'delta', data });
        await turn.flush();
      }
      adapter.events.read = read;
      void turn.emit({ type: 'delta', data: 4 });
    }, adapter);
    expect(events.filter(({ type }) => type === 'delta').map(({ data }) => data)).toEqual([1, 2, 3, 4]);
    expect(errors).toEqual([expect.stringMatching(/^error Could not read the earlier events of turn \w+; /)]);
  });

  async function run(work: (turn: TurnContext) => Promise<void> | void, adapter = open()) {
    const { lines, logger } = capturingLogger();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: async (turn) => (await work(turn), reply('done')) },
    });
    const retry = { attempts: 5, backoff: { type: 'fixed', delayMs: 1 } } as const;
    const turnOptions = { retry, events: { maxBytes: MAX_BYTES } };
    const app = await startApplication({ adapter, orchestrators: [desk], turns: turnOptions, logger });
    const { id } = await app.turns.submit('desk', 'go', { sessionId: await app.session() });
    expect(await app.turns.result(id)).toMatchObject({ reply: 'done' });
    const events: TurnEvent[] = [];
    for await (const event of app.turns.readEvents(id)) events.push(event);
    const linesOf = (level: string): string[] =>
      lines.filter((line) => line.startsWith(level) && line.includes('maxBytes'));
    return { events, warnings: linesOf('warn'), errors: linesOf('error') };
  }
});
