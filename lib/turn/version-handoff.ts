import QuickLRU from 'quick-lru';
import { longestBackoffMs } from '../common/backoff.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { type RunnableOrchestrator } from './turn-runner.js';
import { type TurnSettings } from './turn.settings.js';

/** The number of remembered turns: at least this many, at most twice as many. */
const REMEMBERED = 5000;

/** Leaves turns of newer versions or structures of an orchestrator to workers that have these (BOT-35, FIX-84). */
export class VersionHandoff {
  private readonly offers = new QuickLRU<string, { readonly since: number; readonly last: number }>({
    maxSize: REMEMBERED,
  });

  /** @param isShared whether several processes can run turns of the store */
  constructor(
    private readonly settings: Pick<TurnSettings, 'leaseMs' | 'reconcileMs' | 'retry'>,
    private readonly isShared: boolean,
  ) {}

  /**
   * Returns true if this process runs the turn. A turn whose last checkpoint is of a newer version, or which code with
   * more intents has continued, remains available to newer workers for the longest pause between attempts, counted from
   * its first offer to this process.
   *
   * The stored intents alone decide, because a process that restarts remembers nothing. Code from which an intent was
   * removed therefore waits too, unless the store has one process: no worker with the intent can exist then.
   * @param known the orchestrator of this process
   * @param isOutgrown whether code with more intents has continued it
   */
  accepts(claimed: ClaimedTurn, known: RunnableOrchestrator | undefined, isOutgrown: boolean): boolean {
    const { turn, checkpoint } = claimed;
    if (!known || compareVersions(known.version, turn.version) < 0) return false;
    const lacksIntents = isOutgrown && this.isShared;
    const isBehind = lacksIntents || (checkpoint !== null && compareVersions(known.version, checkpoint.version) < 0);
    if (!isBehind || turn.request.force === true) return true;
    const { leaseMs, reconcileMs, retry } = this.settings;
    const pauseMs = longestBackoffMs(retry.backoff);
    // Longer than the time between two offers to this process, even if several processes receive them in turn.
    const awayMs = pauseMs + leaseMs + 10 * reconcileMs;
    return this.offeredFor(claimed, awayMs, performance.now()) >= pauseMs;
  }

  /**
   * Returns milliseconds since the turn was first offered to this process in its current state. The time restarts if
   * the turn has progressed, or another process held it for a while.
   * @param awayMs if the turn was not offered for longer than this, another process held it
   * @param now by a monotonic clock
   */
  offeredFor({ turn, steps }: Pick<ClaimedTurn, 'turn' | 'steps'>, awayMs: number, now: number): number {
    const key = `${turn.id} ${steps.length}`;
    const known = this.offers.get(key);
    const since = known && now - known.last <= awayMs ? known.since : now;
    this.offers.set(key, { since, last: now });
    return now - since;
  }
}

/** Compares versions: runs of digits as numbers, the rest by code unit. `1.9` < `1.10`, `2026-10-b` < `2026-11-a`. */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0;
  const [partsOfA, partsOfB] = [a, b].map((version) => version.match(/\d+|\D+/g) ?? []);
  for (let i = 0; i < Math.max(partsOfA.length, partsOfB.length); i += 1) {
    const [x = '', y = ''] = [partsOfA[i], partsOfB[i]];
    if (x === y) continue;
    const numbers = /^\d/.test(x) && /^\d/.test(y);
    // BigInt, because a build number made from a time may have more digits than a double holds.
    if (numbers && BigInt(x) !== BigInt(y)) return BigInt(x) < BigInt(y) ? -1 : 1;
    if (!numbers) return x < y ? -1 : 1;
  }
  return 0;
}
