import { explore, type Exploration } from './explore.js';
import { LANE_PROPERTIES } from './lane-rules.js';
import { type Bounds, LaneWorld } from './lane-world.js';
import { replay } from './replay.js';
import { LARGE_WORLDS, WORLDS } from './worlds.js';

/** Replays one transition in three. `npm run test:full` explores larger worlds, and replays every transition of the small ones. */
const PLAN: readonly { readonly name: string; readonly bounds: Bounds; readonly everyNth: number }[] =
  process.env.MODEL === 'full' ? [...planOf(WORLDS, 1), ...planOf(LARGE_WORLDS, 25)] : planOf(WORLDS, 3);

const TIME_LIMIT_MS = 1_800_000;

describe.each(PLAN)('the transition table: $name', ({ bounds, everyNth }) => {
  const world = new LaneWorld(bounds);
  let explored: Exploration | undefined;
  const exploration = (): Exploration => (explored ??= explore(world, LANE_PROPERTIES));

  it(
    'TRN-01 TRN-02 TRN-03 TRN-06 TRN-13 TRN-15 keeps every rule in every order of actions',
    () => {
      const { violation, states, transitions, depth } = exploration();
      expect(violation).toBeNull();
      tell(`${states} states, ${transitions} transitions, ${depth} deep`);
    },
    TIME_LIMIT_MS,
  );

  it(
    `TRN-01 matches the ledger, in one of ${everyNth} transitions`,
    async () => {
      const { transitions, calls } = await replay(world, exploration().graph, everyNth);
      expect(transitions).toBeGreaterThan(1000);
      tell(`${transitions} transitions taken, in ${calls} calls`);
    },
    TIME_LIMIT_MS,
  );
});

function planOf(worlds: Readonly<Record<string, Bounds>>, everyNth: number): (typeof PLAN)[number][] {
  return Object.entries(worlds).map(([name, bounds]) => ({ name, bounds, everyNth }));
}

/** Prints the coverage with the result. */
function tell(line: string): void {
  process.stdout.write(`${expect.getState().currentTestName}: ${line}\n`);
}
