import { once } from 'node:events';
import { join } from 'node:path';
import { mintId } from '../../lib/common/ids.js';
import { forkProgram } from '../support/child-process.js';
import { type StoreOptions, EMBEDDED_STORES } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/restarting-worker.mjs');
const SESSIONS = 16;
const TURNS_EACH = 4;
const ENDS_AT_TURN = 9;
const MOST_STARTS = 60;

type Message = Record<'asks' | 'answered', string | undefined>;

// Over the store whose work waits in the process alone; the conformance suite has the order of offers over every store.
it.each(EMBEDDED_STORES.filter(({ name }) => name === 'sqlite'))(
  'FIX-16 no lane waits much longer than others for its turn while the process crashes again and again, over $name',
  async ({ place }) => {
    const waits = await waitsOver(place!());
    expect(waits).toHaveLength(SESSIONS * TURNS_EACH);
    const sorted = waits.toSorted((a, b) => a - b);
    expect(sorted.at(-1)).toBeLessThanOrEqual(3 * sorted[sorted.length >> 1]);
  },
  120_000,
);

/** How many answers other sessions got while a session waited for one, for each of them. */
async function waitsOver(store: StoreOptions): Promise<number[]> {
  const asked = new Map<string, number>();
  const waits = new Map<string, number>();
  const sessionIds = Array.from({ length: SESSIONS }, () => mintId());
  const setup = { store, sessionIds, turnsEach: TURNS_EACH, endsAtTurn: ENDS_AT_TURN };
  for (let starts = 0; starts < MOST_STARTS; starts += 1) {
    const child = forkProgram(PROGRAM, setup);
    child.on('message', ({ asks, answered }: Message) => {
      // After a crash it asks and is answered again.
      if (asks !== undefined && !asked.has(asks)) asked.set(asks, waits.size);
      if (answered !== undefined && !waits.has(answered)) waits.set(answered, waits.size - asked.get(answered)!);
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== null) break;
  }
  return [...waits.values()];
}
