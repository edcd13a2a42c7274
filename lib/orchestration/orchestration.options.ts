import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { SECONDS_OR_NEVER_RULE, toSeconds } from '../common/seconds.js';

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

/** How states of orchestration are kept. */
export class OrchestrationOptions extends OrchestrationStateOptions {
  /** Part of stored keys: states of different namespaces never see each other. Default `orchestration-state`. */
  @Optional()
  @MustBeName()
  namespace?: string;

  /** Whether the sweep removes states beyond `maxSessions`; what has expired goes in any case. Default true. */
  @Optional()
  @MustBeBoolean()
  cleanup?: boolean;
}
