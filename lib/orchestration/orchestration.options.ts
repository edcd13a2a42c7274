import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { SECONDS_OR_NEVER_RULE, toSeconds } from '../common/seconds.js';

/** Options of orchestration states, with and without Nest. */
export class OrchestrationStateOptions {
  /**
   * Idle seconds after which a state expires, as a number or a string of digits, or `never`. Default: the environment
   * variable SESSION_TTL_SECONDS, otherwise 86,400 (a day). Turns that wait for a signal count as idle.
   */
  @Optional()
  @Must((value) => value === 'never' || toSeconds(value) !== null, SECONDS_OR_NEVER_RULE)
  ttlSeconds?: number | `${number}` | 'never';

  /** The maximum number of states of all agents; the longest idle ones beyond it are removed. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 1_000_000_000)
  maxSessions?: number;

  /** The maximum length of `recentlyUsedTools`. Default 10. */
  @Optional()
  @MustBeInteger(1, 1000)
  recentTools?: number;
}

/** Options of orchestration states in the module. */
export class OrchestrationOptions extends OrchestrationStateOptions {
  /** Part of stored keys: states in different namespaces are separate. Default `orchestration-state`. */
  @Optional()
  @MustBeName()
  namespace?: string;

  /** Makes the sweep remove states beyond `maxSessions`; expired states are always removed. Default true. */
  @Optional()
  @MustBeBoolean()
  cleanup?: boolean;
}
