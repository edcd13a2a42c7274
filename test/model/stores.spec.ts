import fc from 'fast-check';
import { STORES } from '../support/stores.js';
import { LaneWorld } from './lane-world.js';
import { LedgerLane } from './ledger-lane.js';
import { Walk } from './walk.js';
import { LARGE_WORLDS } from './worlds.js';

const WALKS = process.env.MODEL === 'full' ? 500 : 10;

describe.each(STORES)('the transition table in $name', ({ open }) => {
  const { adapter } = open();
  const world = new LaneWorld({ ...LARGE_WORLDS.everything, turns: 4, maxAttempts: 3, zombies: 2 });

  beforeAll(() => adapter.init?.());
  afterAll(() => adapter.close?.());

  it('TRN-01 is what the ledger does, on ways at random', async () => {
    const choices = fc.array(fc.nat(), { minLength: 40, maxLength: 60 });
    const asTheModel = fc.asyncProperty(choices, async (choices) => {
      const walk = new Walk(world, await LedgerLane.open(adapter, world.initial.maxAttempts));
      for (const choice of choices) await walk.take(choice);
    });
    await fc.assert(asTheModel, { numRuns: WALKS });
  }, 600_000);
});
