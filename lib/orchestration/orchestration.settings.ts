/** How orchestration states are stored. */
export interface OrchestrationSettings {
  readonly namespace: string;
  /** Milliseconds of idleness; `undefined`: never. */
  readonly ttlMs: number | undefined;
  readonly recentTools: number;
  /** `undefined`: no limit. */
  readonly maxSessions: number | undefined;
  /** Whether expired states, and those beyond `maxSessions`, are removed from time to time. */
  readonly cleanup: boolean;
}

export const ORCHESTRATION_DEFAULTS = {
  namespace: 'orchestration-state',
  ttlSeconds: 86_400,
  recentTools: 10,
} as const;
