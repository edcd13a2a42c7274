import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { SECONDS_OR_NEVER_RULE, toSeconds } from '../common/seconds.js';

/** How orchestration states are stored. */
export interface OrchestrationSettings {
  readonly namespace: string;
  /** Milliseconds of idleness; `undefined`: never. */
  readonly ttlMs: number | undefined;
  readonly recentTools: number;
  /** `undefined`: no limit. */
  readonly maxSessions: number | undefined;
}

/** What may be said of them, with Nest and without. */
export class OrchestrationStateOptions {
  /**
   * Idle seconds after which a state is gone, digits as text too; `never`. Default: the environment's SESSION_TTL_SECONDS, else
   * 86,400 (a day). Turns that wait for a signal count as idle.
   */
  @Optional()
  @Must((value) => value === 'never' || toSeconds(value) !== null, SECONDS_OR_NEVER_RULE)
  ttlSeconds?: number | string;

  /** States that are kept, of all agents; those beyond that were idle for the longest are removed. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 1_000_000_000)
  maxSessions?: number;

  /** How many tools `recentlyUsedTools` remembers. Default 10. */
  @Optional()
  @MustBeInteger(1, 1000)
  recentTools?: number;
}

/**
 * @param otherSeconds gives the time to live that the environment says, or its default: what is wrong there is its error
 */
export function orchestrationSettings(
  namespace: string | undefined,
  { ttlSeconds, maxSessions, recentTools = 10 }: OrchestrationStateOptions,
  otherSeconds: (otherwise: number) => number,
): OrchestrationSettings {
  const seconds = ttlSeconds === undefined ? otherSeconds(86_400) : Number(ttlSeconds);
  return {
    namespace: namespace ?? 'orchestration-state',
    ttlMs: ttlSeconds === 'never' ? undefined : seconds * 1000,
    recentTools,
    maxSessions,
  };
}
