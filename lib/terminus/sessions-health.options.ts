import { MustBeInteger, Optional } from '../common/check-input.js';

const MAX_MS = 2_147_483_647;

/** What `isHealthy` looks at, and what it takes for down. */
export class SessionsHealthOptions {
  /** Milliseconds that each part has to answer; they are asked side by side. Default 1,000. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  timeoutMs?: number;

  /** Milliseconds after which work that is due and that nobody has claimed makes its lane a stuck one. Default 60,000. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  stuckAfterMs?: number;

  /** Down when more lanes than this are stuck. Default: never; stuck lanes are `degraded`. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxStuckLanes?: number;

  /** Down when a turn has been queued for longer than this many milliseconds. Default: never. */
  @Optional()
  @MustBeInteger(1, MAX_MS)
  maxWaitMs?: number;
}
