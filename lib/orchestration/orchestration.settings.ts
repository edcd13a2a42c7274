import { type OrchestrationStateOptions } from './orchestration.options.js';

/** How orchestration states are stored. */
export interface OrchestrationSettings {
  readonly namespace: string;
  /** Milliseconds of idleness; `undefined`: never. */
  readonly ttlMs: number | undefined;
  readonly recentTools: number;
  /** `undefined`: no limit. */
  readonly maxSessions: number | undefined;
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
