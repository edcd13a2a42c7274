import { type IdGenerator } from '../common/ids.js';
import { type WhenBusy } from './turn.js';

export interface RetrySettings {
  /** Attempts of a turn in all: failures and lost workers count, releases do not. */
  readonly attempts: number;
  readonly backoff: {
    readonly type: 'fixed' | 'exponential';
    readonly delayMs: number;
    readonly maxDelayMs: number;
  };
}

export interface TurnEventSettings {
  /** Milliseconds for which a turn's events stay once it is over. */
  readonly ttlMs: number;
  readonly batchMs: number;
  readonly batchBytes: number;
}

/** The `turns` part of the module's options with every default filled in. */
export interface TurnSettings {
  readonly leaseMs: number;
  readonly reconcileMs: number;
  readonly whenBusy: WhenBusy;
  readonly maxQueuedPerSession: number;
  readonly maxInputBytes: number;
  readonly idempotencyTtlMs: number;
  /** Milliseconds after its creation that a session takes turns. */
  readonly maxSessionLifetimeMs: number | undefined;
  readonly retry: RetrySettings;
  /** Turns of one lane in a row before the others get their turn. */
  readonly maxTurnsPerVisit: number;
  readonly shutdownGraceMs: number;
  /** Of one attempt. */
  readonly timeoutMs: number | undefined;
  /** `null`: what handlers emit is not stored. */
  readonly events: TurnEventSettings | null;
  readonly generateId: IdGenerator;
}
