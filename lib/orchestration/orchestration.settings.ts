import { type OrchestrationStateOptions } from './orchestration.options.js';

/** How orchestration states are stored. */
export interface OrchestrationSettings {
  readonly namespace: string;
  /** Idle milliseconds after which a state expires; `undefined` for never. */
  readonly ttlMs: number | undefined;
  readonly recentTools: number;
  /** `undefined` for no limit. */
  readonly maxSessions: number | undefined;
}

/**
 * @param otherSeconds returns the time to live from the environment, or the given default; throws if the variable is
 * invalid
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
