import { type ClaimedTurn } from '../ledger/turn.store.js';

const REMEMBERED = 10_000;

/** The turns that this process passes on to newer workers, and since when. */
export class PassedTurns {
  private readonly passed = new Map<string, { readonly since: number; readonly last: number }>();

  /**
   * Milliseconds since the turn was first offered to this process as it stands: a turn that got further meanwhile, or was with
   * somebody else for a while, was not left alone.
   * @param awayMs a turn that was not offered for longer was with somebody else
   * @param now by a clock that only goes forward
   */
  offeredFor({ turn, steps }: Pick<ClaimedTurn, 'turn' | 'steps'>, awayMs: number, now: number): number {
    const key = `${turn.id} ${steps.length}`;
    const known = this.passed.get(key);
    const since = known && now - known.last <= awayMs ? known.since : now;
    this.passed.delete(key);
    this.passed.set(key, { since, last: now });
    if (this.passed.size > REMEMBERED) this.passed.delete(this.passed.keys().next().value!);
    return now - since;
  }
}
