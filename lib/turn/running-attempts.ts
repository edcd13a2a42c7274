import { outsideRequests } from '../common/outside-requests.js';
import { type TurnAttempt } from './turn-attempt.js';

/** Empty once its attempt is over. */
interface Place {
  attempt: TurnAttempt | null;
}

/**
 * The attempts that run in this process, by their turns, and the one timer that keeps all of them. It keeps the process up while
 * an attempt runs, and is gone soon after the last one.
 */
export class RunningAttempts {
  /**
   * V8 gives a map that keys keep passing through a new table now and then, and the old ones lead from one to the next: what
   * they hold outlives young collections, all of it together. So they hold places, which lead to nothing of an attempt that
   * is over.
   */
  private readonly places = new Map<string, Place>();
  private timer: NodeJS.Timeout | null = null;
  /** A lease is not renewed in the context of the request whose turn happened to be first. */
  private readonly outsideRequests = outsideRequests();

  /** @param keepMs how often {@link TurnAttempt.keep} is called */
  constructor(private readonly keepMs: number) {}

  add(turnId: string, attempt: TurnAttempt): void {
    // One that is still here has lost its lease, and finds that out now.
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

  /** All of them. */
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
