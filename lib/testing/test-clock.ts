import ms from 'ms';
import { InvalidInputError } from '../common/sessions.error.js';
import { testingMessages } from './testing.messages.js';

/** The last time that a Date can hold. */
const END_OF_TIME = 8_640_000_000_000_000;

/** A component with timed work, which must finish due work before the clock moves on. */
export interface ClockFollower {
  /** Returns when the next work is due, in milliseconds since 1970; `null` if none is known. */
  nextDue(): number | null;
  /** Resolves when all work that is due now is done. */
  rest(): Promise<void>;
}

/**
 * A clock that only moves when the test moves it, and never backwards. Pass it to a store:
 *
 * ```ts
 * const clock = new TestClock();
 * SessionsModule.forRoot({ adapter: memoryAdapter({ clock: clock.now }), turns: { reconcileMs: 10 } });
 * await clock.advance('2h');
 * ```
 *
 * In an application of `SessionsTestingModule`, `advance` also runs the work that becomes due. In your own application,
 * lanes are still polled every `turns.reconcileMs` milliseconds of real time.
 */
export class TestClock {
  private time = Date.now();
  private readonly followers = new Set<ClockFollower>();
  private moving: Promise<unknown> = Promise.resolve();

  /** Returns milliseconds since 1970. Starts at the real time of its creation. Needs no `this`. */
  readonly now = (): number => this.time;

  /**
   * Moves the clock forward. Applications of `SessionsTestingModule` on this clock first finish their current work.
   * Then the clock stops at each retry that becomes due, and the retry runs. Wait time-outs and the turns of lost
   * workers run at the end. `advance(0)` only runs the work that is due now.
   *
   * Waits up to two seconds of real time for each running handler; a slower one continues in the background.
   * Concurrent calls run one after the other.
   * @param by milliseconds, or a string in the format of the package `ms`: '30s', '2h', '1.5 days'
   * @throws InvalidInputError for a negative, infinite or malformed duration; the clock then does not move
   */
  async advance(by: number | string): Promise<void> {
    const duration = toMs(by);
    const move = this.moving.then(() => this.moveBy(duration));
    // The caller receives a failure; the next move must not.
    this.moving = move.catch(() => undefined);
    await move;
  }

  /** @internal @returns a function that removes the follower */
  follow(follower: ClockFollower): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  private async moveBy(duration: number): Promise<void> {
    const target = this.time + duration;
    if (target > END_OF_TIME) throw new InvalidInputError('by', 'must not move the clock beyond the year 275760.');
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
  throw new InvalidInputError('by', testingMessages.wrongDuration(by));
}

/** Parses a duration. `ms` throws for empty and very long strings, and returns undefined for other invalid ones. */
function parse(text: string): number | undefined {
  try {
    return ms(text as ms.StringValue);
  } catch {
    return undefined;
  }
}
