import { STORES } from '../support/stores.js';
import { explore } from './explore.js';
import { type ModelTurn } from './lane.js';
import { LANE_PROPERTIES } from './lane-rules.js';
import { LaneWorld } from './lane-world.js';
import { LedgerLane } from './ledger-lane.js';
import { replay } from './replay.js';
import { TransitionTable } from './transition-table.js';
import { WORLDS } from './worlds.js';

/** Number of transitions of each world, evenly spread. */
const TRANSITIONS = process.env.MODEL === 'full' ? 2000 : 60;

/** Tests cannot move the time of a server, so delays and waits end immediately. Only the holder can end its lease early. */
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
    'TRN-01 matches the ledger: $name',
    async ({ world, explored: { graph, violation } }) => {
      expect(violation).toBeNull();
      const openLane = () => LedgerLane.open(adapter, world.initial.maxLost);
      await replay(world, graph, Math.ceil(graph.edges / TRANSITIONS), openLane);
    },
    600_000,
  );
});
