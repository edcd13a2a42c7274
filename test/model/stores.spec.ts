import { STORES } from '../support/stores.js';
import { explore } from './explore.js';
import { type ModelTurn } from './lane.js';
import { LANE_PROPERTIES } from './lane-rules.js';
import { LaneWorld } from './lane-world.js';
import { LedgerLane } from './ledger-lane.js';
import { replay } from './replay.js';
import { TransitionTable } from './transition-table.js';
import { WORLDS } from './worlds.js';

/** Of each world, evenly spread. */
const TRANSITIONS = process.env.MODEL === 'full' ? 2000 : 60;

/** Time cannot be moved in a server: every delay and every wait is over when it begins. A lease can be given up by who holds it. */
class PromptTable extends TransitionTable {
  protected override putOff(turn: ModelTurn): void {
    turn.due = true;
  }
}

const PROMPT_WORLDS = Object.entries(WORLDS).map(([name, bounds]) => {
  const world = new LaneWorld(bounds, new PromptTable());
  return { name, world, explored: explore(world, LANE_PROPERTIES) };
});

describe.each(STORES)('the transition table in $name', ({ open }) => {
  const { adapter } = open();

  beforeAll(() => adapter.init?.());
  afterAll(() => adapter.close?.());

  it.each(PROMPT_WORLDS)(
    'TRN-01 is what the ledger does: $name',
    async ({ world, explored: { graph, violation } }) => {
      expect(violation).toBeNull();
      const openLane = () => LedgerLane.open(adapter, world.initial.maxLost);
      await replay(world, graph, Math.ceil(graph.edges / TRANSITIONS), openLane);
    },
    600_000,
  );
});
