/** A system that changes its state by one atomic action at a time. */
export interface System<State, Action, Answer> {
  readonly initial: State;
  /** Returns all possible actions, in an order that is the same for states with the same key. */
  actions(state: State): readonly Action[];
  perform(state: State, action: Action): Performed<State, Answer>;
  /** Returns a key. States with the same key behave equally. */
  key(state: State): string;
  /** Formats a step as one line of a trace. */
  tell(action: Action, answer: Answer): string;
}

export interface Performed<State, Answer> {
  readonly answer: Answer;
  /** The state after the step; the same object if nothing changed. */
  readonly after: State;
}

export interface Step<State, Action, Answer> extends Performed<State, Answer> {
  readonly before: State;
  readonly action: Action;
}

export interface Properties<State, Action, Answer> {
  /** Rules that must hold for every step, by name. */
  readonly rules: Readonly<Record<string, (step: Step<State, Action, Answer>) => boolean>>;
  /** Returns whether the state is at rest: nothing more has to happen. */
  isAtRest(state: State): boolean;
  /** Returns the role of the step in a system whose actors are permanently silent. */
  recovery(step: Step<State, Action, Answer>): Recovery | null;
}

/**
 * The role of a step in recovery. From every state, even without all earlier actors, a state at rest must be reachable
 * by steps that happen by `itself`, and by new actors with two steps each: one `enters`, the next one `finishes`.
 */
export type Recovery = 'itself' | 'enters' | 'finishes';

export const STUCK = 'nothing gets stuck';

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** The maximum distance of a state from the initial one, in actions. */
  readonly depth: number;
  readonly graph: Graph;
  /** The first violation; no other is closer to the initial state. */
  readonly violation: Violation | null;
}

export interface Violation {
  readonly rules: readonly string[];
  /** The actions that lead there, one per line. */
  readonly trace: readonly string[];
}

/** Visits every reachable state, nearest first. Stops at the first step that breaks a rule. */
export function explore<State, Action, Answer>(
  system: System<State, Action, Answer>,
  properties: Properties<State, Action, Answer>,
): Exploration {
  const rules = Object.values(properties.rules);
  const ids = new Map<string, number>([[system.key(system.initial), 0]]);
  const graph = new Graph();
  const atRest: number[] = [];
  let depth = -1;
  let transitions = 0;
  const result = (violation: Violation | null): Exploration => ({
    states: ids.size,
    transitions,
    depth,
    graph,
    violation,
  });

  let visited = 0;
  for (let level = [system.initial]; level.length > 0; depth += 1) {
    const next: State[] = [];
    for (const before of level) {
      const from = visited++;
      graph.open(from);
      if (properties.isAtRest(before)) atRest.push(from);
      for (const action of system.actions(before)) {
        transitions += 1;
        const { answer, after } = system.perform(before, action);
        const step = { before, action, answer, after };
        if (!rules.every((holds) => holds(step))) {
          const broken = Object.entries(properties.rules).filter(([, holds]) => !holds(step));
          return result({
            rules: broken.map(([name]) => name),
            trace: [...traceTo(system, graph, from), system.tell(action, answer)],
          });
        }
        let to = from;
        if (after !== before) {
          const key = system.key(after);
          const known = ids.get(key);
          to = known ?? ids.size;
          if (known === undefined) {
            ids.set(key, to);
            next.push(after);
          }
        }
        graph.add(to, properties.recovery(step));
      }
    }
    level = next;
  }

  const stuck = graph.firstWithoutRecovery(atRest);
  return result(stuck === null ? null : { rules: [STUCK], trace: traceTo(system, graph, stuck) });
}

/** The target state of each action of each state. States are numbered in the order of discovery. */
export class Graph {
  private readonly targets = new GrowingArray();
  private readonly recoveries: (Recovery | null)[] = [];
  private readonly firstEdges: number[] = [];
  /** The edge that discovered each state. */
  private readonly foundBy: number[] = [-1];
  private readonly sources = new GrowingArray();

  /** Starts the edges of the next state. */
  open(state: number): void {
    this.firstEdges[state] = this.targets.length;
  }

  /** Adds an edge to the state that was opened last. */
  add(to: number, recovery: Recovery | null): void {
    const edge = this.targets.length;
    if (to === this.foundBy.length) this.foundBy.push(edge);
    this.targets.push(to);
    this.sources.push(this.firstEdges.length - 1);
    this.recoveries.push(recovery);
  }

  get states(): number {
    return this.firstEdges.length;
  }

  get edges(): number {
    return this.targets.length;
  }

  /** Returns the number of a state's first edge; the others follow in the order of its actions. */
  firstEdge(state: number): number {
    return this.firstEdges[state] ?? this.edges;
  }

  target(edge: number): number {
    return this.targets.at(edge);
  }

  /** Returns the action numbers of a shortest path from the initial state. */
  pathTo(state: number): number[] {
    const path: number[] = [];
    for (let at = state; at !== 0; at = this.sources.at(this.foundBy[at])) {
      const edge = this.foundBy[at];
      path.push(edge - this.firstEdges[this.sources.at(edge)]);
    }
    return path.reverse();
  }

  /** @returns the first state from which no state at rest is reachable, see {@link Recovery}; null if none exists */
  firstWithoutRecovery(atRest: readonly number[]): number | null {
    const edgesTo: number[][] = Array.from({ length: this.states }, () => []);
    for (let edge = 0; edge < this.edges; edge += 1) if (this.recoveries[edge]) edgesTo[this.target(edge)].push(edge);
    const recovers = new Uint8Array(this.states);
    const open = [...atRest];
    for (let to = open.pop(); to !== undefined; to = open.pop()) {
      if (recovers[to]) continue;
      recovers[to] = 1;
      for (const edge of edgesTo[to]) {
        const from = this.sources.at(edge);
        if (this.recoveries[edge] === 'itself') open.push(from);
        if (this.recoveries[edge] !== 'finishes') continue;
        for (const entry of edgesTo[from]) if (this.recoveries[entry] === 'enters') open.push(this.sources.at(entry));
      }
    }
    const first = recovers.indexOf(0);
    return first < 0 ? null : first;
  }
}

class GrowingArray {
  private values = new Int32Array(1024);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const longer = new Int32Array(this.length * 2);
      longer.set(this.values);
      this.values = longer;
    }
    this.values[this.length++] = value;
  }

  at(index: number): number {
    return this.values[index];
  }
}

function traceTo<State, Action, Answer>(system: System<State, Action, Answer>, graph: Graph, state: number): string[] {
  let at = system.initial;
  return graph.pathTo(state).map((choice) => {
    const action = system.actions(at)[choice];
    const { answer, after } = system.perform(at, action);
    at = after;
    return system.tell(action, answer);
  });
}
