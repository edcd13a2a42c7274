import { MustBeInteger, Optional } from '../common/check-input.js';

const MAX_MS = 2_147_483_647;

/** The limits of `isHealthy`. */
export class SessionsHealthOptions {
  /** The timeout of each part in milliseconds. The parts are checked concurrently. Default 1,000. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  timeoutMs?: number;

  /** Milliseconds after which a lane with due but unclaimed work is stuck. Default 60,000. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  stuckAfterMs?: number;

  /**
   * The maximum number of stuck lanes; with more, the status is down. Default: no limit; stuck lanes are `degraded`.
   */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxStuckLanes?: number;

  /** The maximum time in milliseconds that a turn may be queued; beyond it, the status is down. Default: no limit. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  maxWaitMs?: number;
}
