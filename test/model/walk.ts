import { isSame } from '../../lib/testing/model/linearizability.js';
import { type LaneState } from './lane.js';
import { type LaneWorld } from './lane-world.js';
import { type LedgerLane, viewOf } from './ledger-lane.js';

/** A lane of the model and its twin in a ledger, on one way through the model. */
export class Walk {
  private readonly trace: string[] = [];
  private state: LaneState;

  constructor(
    private readonly world: LaneWorld,
    private readonly lane: LedgerLane,
  ) {
    this.state = world.initial;
  }

  get calls(): number {
    return this.trace.length;
  }

  /** @param choice one of the actions that may be next, by number; larger ones begin again with the first */
  async take(choice: number): Promise<void> {
    const { world, lane } = this;
    const actions = world.actions(this.state);
    const action = actions[choice % actions.length];
    const { answer, after } = world.perform(this.state, action);
    const putsOff = (action.type === 'retry' || action.type === 'wait') && after.runner === null;
    this.state = putsOff && !lane.movesTime ? world.perform(after, { type: 'time' }).after : after;
    this.trace.push(world.tell(action, answer));
    this.compare('answers', await lane.perform(action, answer), answer);
    this.compare('holds', await lane.view(), viewOf(this.state));
  }

  async end(): Promise<void> {
    if (this.lane.movesTime) this.compare('gives attention', await this.lane.getsAttention(), this.state.attention);
  }

  private compare(what: string, seen: unknown, expected: unknown): void {
    if (isSame(seen, expected)) return;
    const told = `The ledger ${what} ${JSON.stringify(seen)}\ninstead of ${JSON.stringify(expected)}, after:`;
    throw new Error([told, ...this.trace].join('\n'));
  }
}
