import ms from 'ms';
import { InvalidInputError } from '../common/sessions.error.js';

/** The last moment that a Date can hold. */
const END_OF_TIME = 8_640_000_000_000_000;

/** Who has something to do at certain times, and is asked to do it before time goes on. */
export interface ClockFollower {
  /** The next moment at which something falls due, in milliseconds since 1970; `null`: none that is known. */
  nextDue(): number | null;
  /** Resolves when all that can be done at the present moment is done. */
  rest(): Promise<void>;
}

/**
 * A clock that stands still until it is told to move, and never moves back. Give it to a store:
 *
 * ```ts
 * const clock = new TestClock();
 * SessionsModule.forRoot({ adapter: memoryAdapter({ clock: clock.now }), turns: { reconcileMs: 10 } });
 * await clock.advance('2h');
 * ```
 *
 * In an application of `SessionsTestingModule`, `advance` also runs what falls due; in one that you set up yourself the
 * lanes are looked at every `turns.reconcileMs` milliseconds of real time, as always.
 */
export class TestClock {
  private time = Date.now();
  private readonly followers = new Set<ClockFollower>();
  private moving: Promise<unknown> = Promise.resolve();

  /** Milliseconds since 1970; at first the real time at which the clock was made. Can be passed on detached. */
  readonly now = (): number => this.time;

  /**
   * Moves the clock forward. The applications of `SessionsTestingModule` on this clock first finish what they have begun;
   * then everything that falls due on the way is run at its own time, in order: retries after their backoff. At the end
   * come wait time-outs and the turns of lost workers. `advance(0)` only runs what is due now.
   *
   * Waits for handlers that run, each for up to two seconds of real time: one that takes longer goes on behind it.
   * Calls that overlap are made one after the other.
   * @param by milliseconds, or a text as the package `ms` reads it: '30s', '2h', '1.5 days'
   * @throws InvalidInputError for a negative, infinite or malformed duration; the clock is not moved then
   */
  async advance(by: number | string): Promise<void> {
    const duration = toMs(by);
    const move = this.moving.then(() => this.moveBy(duration));
    // The caller hears of a failure; the next move must not.
    this.moving = move.catch(() => undefined);
    await move;
  }

  /** @internal @returns ends it */
  follow(follower: ClockFollower): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  private async moveBy(duration: number): Promise<void> {
    const target = this.time + duration;
    if (target > END_OF_TIME) throw new InvalidInputError('by', 'must not lead beyond the year 275760.');
    await this.rest();
    for (let due = this.nextDue(); due <= target; due = this.nextDue()) {
      this.time = Math.max(this.time, due);
      await this.rest();
    }
    this.time = target;
    await this.rest();
  }

  private nextDue(): number {
    return Math.min(...[...this.followers].map((follower) => follower.nextDue() ?? Infinity));
  }

  private async rest(): Promise<void> {
    for (const follower of this.followers) await follower.rest();
  }
}

function toMs(by: unknown): number {
  const duration = typeof by === 'string' ? parse(by) : by;
  if (typeof duration === 'number' && Number.isFinite(duration) && duration >= 0) return duration;
  throw new InvalidInputError(
    'by',
    `must be milliseconds, 0 or more, or a duration such as '30s', '2h' or '1d'. It is ${typeof by === 'string' ? JSON.stringify(by) : String(by)}.`,
  );
}

/** `ms` throws for an empty and for a very long text, and gives undefined for one that it cannot read. */
function parse(text: string): number | undefined {
  try {
    return ms(text as ms.StringValue);
  } catch {
    return undefined;
  }
}
