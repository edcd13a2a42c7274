/** Something that goes from state to state, one atomic action at a time. */
export interface System<State, Action, Answer> {
  readonly initial: State;
  /** All that may happen next, in an order that states with the same key share. */
  actions(state: State): readonly Action[];
  perform(state: State, action: Action): Performed<State, Answer>;
  /** States with the same key have the same future. */
  key(state: State): string;
  /** One line of a trace. */
  tell(action: Action, answer: Answer): string;
}

export interface Performed<State, Answer> {
  readonly answer: Answer;
  /** The same object when nothing changed. */
  readonly after: State;
}

export interface Step<State, Action, Answer> extends Performed<State, Answer> {
  readonly before: State;
  readonly action: Action;
}

export interface Properties<State, Action, Answer> {
  /** Must hold of every step, by name. */
  readonly rules: Readonly<Record<string, (step: Step<State, Action, Answer>) => boolean>>;
  /** Nothing more has to happen. */
  isAtRest(state: State): boolean;
  /** What the step is to a system whose every actor falls silent for good. */
  recovery(step: Step<State, Action, Answer>): Recovery | null;
}

/**
 * From every state, and though all who have acted are gone, one at rest must be reachable: by steps that happen by
 * `itself`, and by newcomers who each take two steps: one `enters`, its next one `finishes`.
 */
export type Recovery = 'itself' | 'enters' | 'finishes';

export const STUCK = 'nothing gets stuck';

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** Actions on the longest of the shortest ways to a state. */
  readonly depth: number;
  readonly graph: Graph;
  /** The first one found, so no other is nearer to the initial state. */
  readonly violation: Violation | null;
}

export interface Violation {
  readonly rules: readonly string[];
  /** What leads there, one action a line. */
  readonly trace: readonly string[];
}

/** Visits every state that can be reached, the nearest first. Stops at the first step that breaks a rule. */
export function explore<State, Action, Answer>(
  system: System<State, Action, Answer>,
  properties: Properties<State, Action, Answer>,
): Exploration {
  const rules = Object.entries(properties.rules);
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
        if (!rules.every(([, holds]) => holds(step))) {
          const broken = rules.filter(([, holds]) => !holds(step)).map(([name]) => name);
          return result({ rules: broken, trace: [...traceTo(system, graph, from), system.tell(action, answer)] });
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

/** Which state each action of each state leads to. States are numbered as they were found. */
export class Graph {
  private readonly targets = new GrowingArray();
  private readonly recoveries: (Recovery | null)[] = [];
  private readonly firstEdges: number[] = [];
  /** The edge by which each state was found. */
  private readonly foundBy: number[] = [-1];
  private readonly sources = new GrowingArray();

  /** Begins the edges of the next state. */
  open(state: number): void {
    this.firstEdges[state] = this.targets.length;
  }

  /** The next edge of the state that was opened last. */
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

  /** Number of a state's first edge; the others follow in the order of its actions. */
  firstEdge(state: number): number {
    return this.firstEdges[state] ?? this.edges;
  }

  target(edge: number): number {
    return this.targets.at(edge);
  }

  /** Which of its actions to take from state to state, one of the shortest ways from the initial one. */
  pathTo(state: number): number[] {
    const path: number[] = [];
    for (let at = state; at !== 0; at = this.sources.at(this.foundBy[at])) {
      const edge = this.foundBy[at];
      path.push(edge - this.firstEdges[this.sources.at(edge)]);
    }
    return path.reverse();
  }

  /** @returns the first state that nothing leads from to one at rest, see {@link Recovery}; null: there is none */
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
