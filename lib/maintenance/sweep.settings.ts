import { checkOptions } from '../common/check-options.js';
import { toMs } from '../common/seconds.js';
import { SweepOptions } from './sweep.options.js';

/** The `sweep` part of the module's options with every default filled in. */
export interface SweepSettings {
  /** `null`: nothing is swept unless somebody asks for it. */
  readonly cron: string | null;
  /** Sessions of each kind in a run. */
  readonly maxPerRun: number;
  /** Milliseconds; left out: nothing expires for being idle. */
  readonly expireAfterMs: number | undefined;
  /** Milliseconds; left out: nothing is deleted. */
  readonly purgeAfterMs: number | undefined;
  /** Of settled turns. Milliseconds; left out: nothing is deleted. */
  readonly purgeTurnsAfterMs: number | undefined;
  /** How many documents of a namespace are kept: those that were accessed last. */
  readonly maxDocuments: readonly { readonly namespace: string; readonly keep: number }[];
}

/**
 * @param turnsKeptMs for at least so long settled turns stay: their idempotency keys hold
 * @throws SessionsConfigurationError naming the option that is wrong
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
