import { explore, type Graph } from './explore.js';
import { LANE_PROPERTIES } from './lane-rules.js';
import { LaneWorld } from './lane-world.js';
import { MUTANTS } from './mutants.js';
import { replay } from './replay.js';
import { WORLDS } from './worlds.js';

type WorldName = keyof typeof WORLDS;

/** The rules of the table without mistakes. */
const graphs = new Map<WorldName, Graph>();

describe.each(MUTANTS)('a table in which $name', ({ table, world, breaks }) => {
  const mutant = new LaneWorld(WORLDS[world], table);

  it(`TRN-01 is found: ${breaks}`, () => {
    expect(explore(mutant, LANE_PROPERTIES).violation?.rules).toContain(breaks);
  });

  it('TRN-01 does not match the ledger', async () => {
    await expect(replay(mutant, graphOf(world), 1)).rejects.toThrow('The ledger');
  });
});

it('TRN-01 every rule detects a mistake', () => {
  const found = new Set<string>(MUTANTS.map(({ breaks }) => breaks));
  expect(Object.keys(LANE_PROPERTIES.rules).filter((rule) => !found.has(rule))).toEqual([]);
});

function graphOf(world: WorldName): Graph {
  const graph = graphs.get(world) ?? explore(new LaneWorld(WORLDS[world]), LANE_PROPERTIES).graph;
  graphs.set(world, graph);
  return graph;
}
