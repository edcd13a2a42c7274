import { outsideRequests } from '../common/background-work.js';
import { type TurnAttempt } from './turn-attempt.js';

/** Empty after its attempt has ended. */
interface Place {
  attempt: TurnAttempt | null;
}

/**
 * The attempts that run in this process, by turn, and the timer that keeps them alive. The timer keeps the process
 * running while an attempt runs, and ends soon after the last one.
 */
export class RunningAttempts {
  /**
   * The map contains places instead of attempts. V8 gives a map with changing keys a new table from time to time, and
   * old tables reference each other. Their contents would survive young collections, so they must not reference ended
   * attempts.
   */
  private readonly places = new Map<string, Place>();
  private timer: NodeJS.Timeout | null = null;
  /** Prevents that leases are renewed in the context of the first turn's request. */
  private readonly outsideRequests = outsideRequests();

  /** @param keepMs how often {@link TurnAttempt.keep} is called */
  constructor(private readonly keepMs: number) {}

  add(turnId: string, attempt: TurnAttempt): void {
    // An earlier attempt of the turn has lost its lease. `keep` makes it detect that now.
    this.get(turnId)?.keep();
    this.places.set(turnId, { attempt });
    this.timer ??= this.outsideRequests(() => setInterval(() => this.keepAll(), this.keepMs));
    this.timer.ref();
  }

  remove(turnId: string, attempt: TurnAttempt): void {
    const place = this.places.get(turnId);
    if (place?.attempt !== attempt) return;
    place.attempt = null;
    this.places.delete(turnId);
    if (this.places.size === 0) this.timer?.unref();
  }

  get(turnId: string): TurnAttempt | undefined {
    return this.places.get(turnId)?.attempt ?? undefined;
  }

  /** Returns all running attempts. */
  list(): TurnAttempt[] {
    return [...this.places.values()].flatMap(({ attempt }) => attempt ?? []);
  }

  private keepAll(): void {
    for (const attempt of this.list()) attempt.keep();
    if (this.places.size > 0 || !this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
  }
}
