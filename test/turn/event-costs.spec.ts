import {
  defineOrchestrator,
  reply,
  type SessionsAdapter,
  type TurnEvent,
  type TurnService,
} from 'nestjs-agent-sessions';
import { lastValueFrom, toArray } from 'rxjs';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

/** Sizes of the events of a turn, in characters. */
const LOGS: readonly [name: string, sizes: readonly number[]][] = [
  ['5000 small events', Array<number>(5000).fill(10)],
  ['200 events of 50 KB', Array<number>(200).fill(50_000)],
  ['events of changing sizes', Array.from({ length: 600 }, (_, at) => (Math.floor(at / 100) % 2 === 0 ? 10 : 40_000))],
  ['one batch', Array<number>(20).fill(1000)],
];

const READERS: readonly [name: string, read: (turns: TurnService, turnId: string) => Promise<number>][] = [
  [
    'readEvents',
    async (turns, turnId) => {
      let count = 0;
      for await (const _ of turns.readEvents(turnId)) count += 1;
      return count;
    },
  ],
  ['events', async (turns, turnId) => (await lastValueFrom((await turns.events(turnId)).pipe(toArray()))).length],
];

describe.each(LIVE_STORES)('the cost of reading events over $name', ({ open }) => {
  it.each(LOGS)('FIX-85 is at most 1.5 times the bytes of %s, while the turn runs and afterwards', async (_, sizes) => {
    const { adapter, read } = counted(open());
    let emitted: readonly TurnEvent[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          for (const size of sizes) await turn.emit({ type: 'delta', data: 'x'.repeat(size) });
          await turn.flush();
          read.bytes = 0;
          emitted = await turn.emitted();
          expect(read.bytes).toBe(bytesOf(emitted));
          return reply('done');
        },
      },
    });
    const worker = await startApplication({ adapter, orchestrators: [desk], turns: { retry: { attempts: 1 } } });
    const other = counted(adapter);
    const web = await startApplication({ adapter: other.adapter, role: 'submit' });
    const turn = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });

    const [, readEvents] = READERS[0];
    expect(await readEvents(web.turns, turn.id)).toBe(sizes.length + 1);
    expect(emitted).toHaveLength(sizes.length);
    expect(other.read.bytes).toBeLessThanOrEqual(1.5 * bytesOf(emitted));

    for (const [, readAll] of READERS) {
      other.read.bytes = 0;
      expect(await readAll(web.turns, turn.id)).toBe(sizes.length + 1);
      expect(other.read.bytes).toBeLessThanOrEqual(1.5 * bytesOf(emitted));
    }
  });
});

function bytesOf(events: readonly TurnEvent[]): number {
  return events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
}

/** An adapter that counts the characters of the events that are read. */
function counted(adapter: SessionsAdapter) {
  const read = { bytes: 0 };
  const events = Object.assign(Object.create(adapter.events) as typeof adapter.events, {
    read: async (...args: Parameters<typeof adapter.events.read>) => {
      const page = await adapter.events.read(...args);
      read.bytes += bytesOf(page);
      return page;
    },
  });
  return { adapter: { ...adapter, events }, read };
}
