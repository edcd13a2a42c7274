import { CronTime } from 'cron';
import { Must, MustBeBoolean, MustBeInteger, Optional } from '../common/check-input.js';
import { isSeconds, MAX_SECONDS } from '../common/seconds.js';

/** When idle sessions are suspended, expired and deleted. */
export class SweepOptions {
  /** A cron expression with five or six fields, and with a next run (FIX-77). Default: every five minutes. */
  @Optional()
  @Must(hasNextRun, 'must be a cron expression with a next run, for example */5 * * * *.')
  cron?: string;

  /** Enables the sweep in this process. Default true. */
  @Optional()
  @MustBeBoolean()
  enabled?: boolean;

  /** Idle seconds after which suspended and never used sessions expire. Default: never. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  expireAfterSeconds?: number;

  /** Seconds after which expired sessions are deleted with all their data. Default: never. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  purgeAfterSeconds?: number;

  /**
   * Seconds after which settled turns are deleted, with their results, steps and idempotency keys; never before these
   * keys have expired. Messages and checkpoints are kept. `false`: never. Default 604,800 (a week).
   */
  @Optional()
  @Must(
    (value) => value === false || isSeconds(value),
    `must be false or an integer of seconds from 1 to ${MAX_SECONDS}.`,
  )
  purgeTurnsAfterSeconds?: number | false;

  /** The approximate maximum of sessions of each kind per run; the next run continues. Default 10,000. */
  @Optional()
  @MustBeInteger(1, 10_000_000)
  maxPerRun?: number;
}

/** Returns whether the cron expression has a date in the next 8 years (FIX-77). `0 0 31 2 *` parses, but has none. */
function hasNextRun(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    new CronTime(value).sendAt();
    return true;
  } catch {
    return false;
  }
}
