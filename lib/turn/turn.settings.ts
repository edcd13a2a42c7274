import { type Backoff } from '../common/backoff.js';
import { checkOptions } from '../common/check-options.js';
import { type IdGenerator } from '../common/ids.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { BackoffOptions, RetryOptions, TurnEventsOptions, type TurnsOptions } from './turn.options.js';
import { type WhenBusy } from '../ledger/turn.js';

export interface RetrySettings {
  /** The number of handler failures that end a turn; lost attempts and releases do not count. */
  readonly attempts: number;
  /** The number of lost attempts without a new step that end a turn. */
  readonly maxLost: number;
  readonly backoff: Backoff;
}

export interface TurnEventSettings {
  /** Milliseconds that a turn's events are kept after it has ended. */
  readonly ttlMs: number;
  readonly batchMs: number;
  readonly batchBytes: number;
  /** The bytes of events that one turn shows live. */
  readonly maxBytes: number;
}

/** The `turns` options of the module with all defaults applied. */
export interface TurnSettings {
  readonly leaseMs: number;
  readonly reconcileMs: number;
  readonly whenBusy: WhenBusy;
  readonly maxQueuedPerSession: number;
  readonly maxInputBytes: number;
  readonly maxStepBytes: number;
  readonly maxReplyBytes: number;
  /** The number of handlers of this process that may wait for other turns. */
  readonly maxWaitingParents: number;
  readonly idempotencyTtlMs: number;
  /** Milliseconds without activity after which a session counts as suspended. */
  readonly sessionTtlMs: number;
  /** Milliseconds after its creation that a session accepts turns. */
  readonly maxSessionLifetimeMs: number | undefined;
  readonly retry: RetrySettings;
  /** The number of turns of one lane that run in a row before other lanes are visited. */
  readonly maxTurnsPerVisit: number;
  readonly shutdownGraceMs: number;
  /** The time limit of one attempt. */
  readonly timeoutMs: number | undefined;
  /** `null` if events of handlers are not stored. */
  readonly events: TurnEventSettings | null;
  /** True if turns write messages to the conversation log. */
  readonly logsConversations: boolean;
  readonly generateId: IdGenerator;
}

/** @throws SessionsConfigurationError naming the invalid option of `retry` or `events` */
export function turnSettings(
  turns: TurnsOptions,
  others: Pick<TurnSettings, 'sessionTtlMs' | 'maxSessionLifetimeMs' | 'logsConversations' | 'generateId'>,
): TurnSettings {
  return {
    whenBusy: turns.whenBusy ?? 'enqueue',
    maxQueuedPerSession: turns.maxQueuedPerSession ?? 100,
    maxInputBytes: turns.maxInputBytes ?? 262_144,
    maxWaitingParents: turns.maxWaitingParents ?? 1000,
    maxStepBytes: turns.maxStepBytes ?? 4_194_304,
    maxReplyBytes: turns.maxReplyBytes ?? 1_048_576,
    leaseMs: turns.leaseMs ?? 10_000,
    reconcileMs: turns.reconcileMs ?? 1000,
    idempotencyTtlMs: (turns.idempotencySeconds ?? 86_400) * 1000,
    shutdownGraceMs: turns.shutdownGraceMs ?? 10_000,
    timeoutMs: turns.timeoutMs === false ? undefined : (turns.timeoutMs ?? 900_000),
    maxTurnsPerVisit: 16,
    retry: retryOf(turns.retry),
    events: eventsOf(turns.events),
    ...others,
  };
}

function retryOf(options: RetryOptions | undefined): RetrySettings {
  const retry = checkOptions(RetryOptions, 'turns.retry', options);
  const backoff = checkOptions(BackoffOptions, 'turns.retry.backoff', retry.backoff);
  const { type = 'exponential', delayMs = 500 } = backoff;
  const { maxDelayMs = Math.max(delayMs, 60_000) } = backoff;
  if (type === 'exponential' && backoff.delayMs !== undefined && delayMs > maxDelayMs) {
    throw new SessionsConfigurationError(
      `SessionsModule: The option turns.retry.backoff.delayMs must not exceed maxDelayMs, which is ${maxDelayMs}. ` +
        `Received: ${delayMs}.`,
    );
  }
  return { attempts: retry.attempts ?? 3, maxLost: retry.maxLost ?? 5, backoff: { type, delayMs, maxDelayMs } };
}

function eventsOf(options: false | TurnEventsOptions | undefined): TurnEventSettings | null {
  if (options === false) return null;
  const events = checkOptions(TurnEventsOptions, 'turns.events', options);
  const { ttlSeconds = 3600, batchMs = 25, batchBytes = 4096, maxBytes = 16_777_216 } = events;
  return { ttlMs: ttlSeconds * 1000, batchMs, batchBytes, maxBytes };
}
