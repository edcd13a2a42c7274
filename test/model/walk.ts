import { isSame } from '../../lib/testing/model/linearizability.js';
import { type Answer, type LaneAction, type LaneState } from './lane.js';
import { type LaneWorld } from './lane-world.js';
import { type LedgerLane, viewOf } from './ledger-lane.js';

/** A lane of the model and the same lane in a ledger, on one path through the model. */
export class Walk {
  private readonly steps: { readonly action: LaneAction; readonly answer: Answer }[] = [];
  private state: LaneState;

  constructor(
    private readonly world: LaneWorld,
    private readonly lane: LedgerLane,
  ) {
    this.state = world.initial;
  }

  get calls(): number {
    return this.steps.length;
  }

  /** @param choice the number of one of the possible actions */
  async take(choice: number): Promise<void> {
    const action = this.world.actions(this.state)[choice];
    const { answer, after } = this.world.perform(this.state, action);
    this.state = after;
    this.steps.push({ action, answer });
    this.compare('answers', await this.lane.perform(action, answer), answer);
  }

  /** Compares all data of the ledger. */
  async look(): Promise<void> {
    this.compare('holds', await this.lane.view(), viewOf(this.state));
  }

  async end(): Promise<void> {
    if (this.lane.canWait) this.compare('gives attention', await this.lane.getsAttention(), this.state.attention);
  }

  private compare(what: string, seen: unknown, expected: unknown): void {
    if (isSame(seen, expected)) return;
    const trace = this.steps.map(({ action, answer }) => this.world.tell(action, answer));
    const told = `The ledger ${what} ${JSON.stringify(seen)}\ninstead of ${JSON.stringify(expected)}, after:`;
    throw new Error([told, ...trace].join('\n'));
  }
}
