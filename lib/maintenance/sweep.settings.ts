import { checkOptions } from '../common/check-options.js';
import { toMs } from '../common/seconds.js';
import { SweepOptions } from './sweep.options.js';

/** The `sweep` options of the module with all defaults applied. */
export interface SweepSettings {
  /** `null` disables the timer; `sweep()` can still be called. */
  readonly cron: string | null;
  /** The maximum number of sessions of each kind per run. */
  readonly maxPerRun: number;
  /** Milliseconds; if absent, idle sessions do not expire. */
  readonly expireAfterMs: number | undefined;
  /** Milliseconds; if absent, expired sessions are not deleted. */
  readonly purgeAfterMs: number | undefined;
  /** Milliseconds; if absent, settled turns are not deleted. */
  readonly purgeTurnsAfterMs: number | undefined;
  /** The number of documents kept per namespace: those that were accessed last. */
  readonly maxDocuments: readonly { readonly namespace: string; readonly keep: number }[];
}

/**
 * @param turnsKeptMs the minimum time that settled turns are kept, because their idempotency keys are valid
 * @throws SessionsConfigurationError naming the invalid option
 */
export function sweepSettings(
  options: false | SweepOptions | undefined,
  turnsKeptMs: number,
  maxDocuments: SweepSettings['maxDocuments'],
): SweepSettings {
  const {
    enabled = true,
    cron = '*/5 * * * *',
    maxPerRun = 10_000,
    expireAfterSeconds,
    purgeAfterSeconds,
    purgeTurnsAfterSeconds = 604_800,
  } = checkOptions(SweepOptions, 'sweep', options === false ? { enabled: false } : options);
  return {
    cron: enabled ? cron : null,
    maxPerRun,
    expireAfterMs: toMs(expireAfterSeconds),
    purgeAfterMs: toMs(purgeAfterSeconds),
    maxDocuments,
    purgeTurnsAfterMs:
      purgeTurnsAfterSeconds === false ? undefined : Math.max(purgeTurnsAfterSeconds * 1000, turnsKeptMs),
  };
}
