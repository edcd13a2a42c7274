import { type Graph } from './explore.js';
import { type LaneWorld } from './lane-world.js';
import { LedgerLane } from './ledger-lane.js';
import { Walk } from './walk.js';

export interface Replayed {
  /** Number of model transitions that the ledger executed, each at least once. */
  readonly transitions: number;
  /** Number of calls, including those on the paths. */
  readonly calls: number;
}

/**
 * Sends the actions of a world to a real ledger, and compares all answers and readable data. Each walk starts
 * at the empty lane, and continues as long as an unvisited transition exists.
 * @param everyNth one transition in this many is executed
 * @param open opens an empty lane; default: in memory
 * @throws Error with the first difference and its trace
 */
export async function replay(
  world: LaneWorld,
  graph: Graph,
  everyNth: number,
  open: () => Promise<LedgerLane> = () => LedgerLane.inMemory(world.initial.maxLost),
): Promise<Replayed> {
  const todo = Uint8Array.from({ length: graph.edges }, (_, edge) => (edge % everyNth === 0 ? 1 : 0));
  const transitions = todo.reduce((sum, one) => sum + one, 0);
  let calls = 0;

  for (let start = 0; start < graph.states;) {
    if (nextOf(graph, todo, start) === null) {
      start += 1;
      continue;
    }
    const walk = new Walk(world, await open());
    for (const choice of graph.pathTo(start)) await walk.take(choice);
    let at = start;
    for (let edge = nextOf(graph, todo, at); edge !== null; edge = nextOf(graph, todo, at)) {
      await walk.take(edge - graph.firstEdge(at));
      await walk.look();
      todo[edge] = 0;
      at = graph.target(edge);
    }
    await walk.end();
    calls += walk.calls;
  }
  return { transitions, calls };
}

/** Returns the next transition from a state; transitions to the same state come first. */
function nextOf(graph: Graph, todo: Uint8Array, state: number): number | null {
  let leaving: number | null = null;
  for (let edge = graph.firstEdge(state); edge < graph.firstEdge(state + 1); edge += 1) {
    if (!todo[edge]) continue;
    if (graph.target(edge) === state) return edge;
    leaving ??= edge;
  }
  return leaving;
}
