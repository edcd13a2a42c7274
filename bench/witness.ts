import { WrongAnswerError } from './wrong-answer.error.js';

/** The number of turns per session. */
export type Load = readonly number[];

/** Observes the turns of a load, and checks the rules. */
export class Witness {
  /** When the first turn started, by `performance.now()`. */
  startedAt = 0;
  /** When the last turn of each session settled. */
  readonly settledAt: Float64Array;
  /** The sessions of the turns, in the order in which the turns started. */
  readonly begun: number[] = [];
  readonly everything: Promise<void>;
  private readonly seen: readonly Uint8Array[];
  private readonly next: Uint32Array;
  private readonly running: Uint8Array;
  private readonly problems: string[] = [];
  private readonly total: number;
  private settledCount = 0;
  private finish: () => void = () => {};

  /** @param ordered whether the turns of a session must run one after the other, in order */
  constructor(
    readonly load: Load,
    private readonly ordered: boolean,
  ) {
    this.total = load.reduce((sum, turns) => sum + turns, 0);
    this.seen = load.map((turns) => new Uint8Array(turns));
    this.next = new Uint32Array(load.length);
    this.running = new Uint8Array(load.length);
    this.settledAt = new Float64Array(load.length);
    this.everything = new Promise((resolve) => (this.finish = resolve));
  }

  begin(session: number, turn: number): void {
    if (this.begun.length === 0) this.startedAt = performance.now();
    this.begun.push(session);
    if (this.seen[session][turn] !== 0) this.problems.push(`turn ${turn} of session ${session} ran twice`);
    this.seen[session][turn] = 1;
    if (!this.ordered) return;
    if (this.running[session] !== 0) this.problems.push(`turn ${turn} of session ${session} ran beside another one`);
    if (this.next[session] !== turn) this.problems.push(`turn ${turn} of session ${session} ran out of order`);
    this.running[session] = 1;
    this.next[session] = turn + 1;
  }

  end(session: number): void {
    this.running[session] = 0;
  }

  settled(session: number): void {
    this.settledAt[session] = performance.now();
    this.settledCount += 1;
    if (this.settledCount === this.total) this.finish();
  }

  failed(what: string): void {
    this.problems.push(what);
    this.finish();
  }

  /** Returns when the last turn of these sessions settled. */
  endOf(from = 0, to = this.settledAt.length): number {
    return Math.max(...this.settledAt.subarray(from, to));
  }

  /** @throws WrongAnswerError */
  verify(): void {
    if (this.begun.length !== this.total) this.problems.push(`${this.begun.length} turns ran, not ${this.total}`);
    if (this.settledCount !== this.total) this.problems.push(`${this.settledCount} turns settled, not ${this.total}`);
    if (this.problems.length > 0) throw new WrongAnswerError(this.problems.slice(0, 5).join('; '));
  }
}
