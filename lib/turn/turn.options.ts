import { Allow } from 'class-validator';
import { isIntegerWithin, Must, MustBeInteger, MustHave, Optional } from '../common/check-input.js';
import { MAX_SECONDS } from '../common/seconds.js';
import { missingOfQueue, type TurnQueue } from '../ledger/turn-queue.js';
import { WHEN_BUSY, type WhenBusy } from '../ledger/turn.js';

/** The longest timeout of a Node timer. */
const MAX_MS = 2_147_483_647;

/** Pauses between the attempts of a turn. */
export class BackoffOptions {
  /** `exponential` (default) doubles with each failure. */
  @Optional()
  @Must((value) => value === 'fixed' || value === 'exponential', 'must be fixed or exponential.')
  type?: 'fixed' | 'exponential';

  /** Milliseconds before the second attempt. With `exponential`, the pause is random: from half of them to all. Default 500. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  delayMs?: number;

  /** The upper limit of exponential delays, in milliseconds. Default 60,000, or `delayMs` if that is longer. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxDelayMs?: number;
}

/** How often a turn is attempted, and the pauses between attempts. */
export class RetryOptions {
  /** The maximum number of failed attempts; the last failure ends the turn. Default 3. */
  @Optional()
  @MustBeInteger(1, 1000)
  attempts?: number;

  /**
   * The maximum number of attempts that are lost with their process since the turn last stored a step, wait or
   * iteration; the last loss ends the turn as WORKER_LOST. Ten times as many losses end it in any case (FIX-62).
   * Default 5.
   */
  @Optional()
  @MustBeInteger(1, 1000)
  maxLost?: number;

  /** The pauses between two attempts. Default: exponential, from 500 ms to one minute. */
  @Allow()
  backoff?: BackoffOptions;
}

/** How the events of handlers are stored. */
export class TurnEventsOptions {
  /** Seconds that events are kept after their turn has ended; never longer than the turn itself. Default 3,600. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  ttlSeconds?: number;

  /**
   * Milliseconds for which events are collected before they are stored together. The first event, and one that follows
   * a pause of this length, is stored at once. Default 25.
   */
  @Optional()
  @MustBeInteger(0, 10_000)
  batchMs?: number;

  /** Bytes of events, as JSON, that are stored without waiting for more. Default 4,096. */
  @Optional()
  @MustBeInteger(1, 262_144)
  batchBytes?: number;

  /**
   * Bytes of events, as JSON, that one turn can show live, over all its attempts. Beyond it, events of handlers are
   * dropped, which is logged. An answer of a chat (`streamReply`, `uiStream`) then appears step by step, when each
   * step is stored. Default 16,777,216 (16 MiB).
   */
  @Optional()
  @MustBeInteger(1, 1_073_741_824)
  maxBytes?: number;
}

/** How turns are queued, run and retried. */
export class TurnsOptions {
  /** The queue that notifies workers of sessions with work. Default: a queue in this process. */
  @Optional()
  @MustHave(missingOfQueue, 'must be a TurnQueue, for example bullmqQueue({ ... }).')
  queue?: TurnQueue;

  /**
   * The number of sessions whose turns this process runs concurrently, with the default queue. With BullMQ, set
   * `bullmqQueue({ concurrency })` instead. Default 32.
   */
  @Optional()
  @MustBeInteger(1, 10_000)
  concurrency?: number;

  /**
   * The number of handlers of this process that may wait for other turns. They hold no slot of `concurrency`, but use
   * memory. Further waits fail with ProcessLimitError. Default 1,000.
   */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxWaitingParents?: number;

  /** How a message is handled that arrives while the session is busy. Default `enqueue`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;

  /** The maximum number of queued turns per session. Default 100. */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxQueuedPerSession?: number;

  /** The maximum size of one input as JSON, in bytes. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxInputBytes?: number;

  /** The maximum size of the result of a step or of a tool call as JSON, in bytes. Default 4,194,304 (4 MiB). */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxStepBytes?: number;

  /**
   * The maximum size as JSON, in bytes, of each of these: a reply with its `data`, a message that a turn adds, and the
   * decision of a route. Default 1,048,576 (1 MiB).
   */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxReplyBytes?: number;

  /** How often a turn is attempted. Default: three times. */
  @Allow()
  retry?: RetryOptions;

  /**
   * How the events of handlers are stored. `false` disables storing: streams then contain only the terminal event.
   * Default: the defaults of each option.
   */
  @Allow()
  events?: false | TurnEventsOptions;

  /**
   * Milliseconds for which a worker holds a turn without renewal; the lane of a lost worker waits this long. Default
   * 10,000.
   */
  @Optional()
  @MustBeInteger(100, 3_600_000)
  leaseMs?: number;

  /** The interval of queries for lanes that are due, in milliseconds. Default 1,000. */
  @Optional()
  @MustBeInteger(10, 3_600_000)
  reconcileMs?: number;

  /** Seconds for which an idempotency key is remembered after its turn settled. Default 86,400 (a day). */
  @Optional()
  @MustBeInteger(1, 31_536_000)
  idempotencySeconds?: number;

  /**
   * The time limit of one attempt, in milliseconds. After it, the AbortSignal is aborted and the attempt counts as
   * failed. Waiting for a signal does not count. `false`: no limit. Default 900,000 (15 minutes).
   */
  @Optional()
  @Must(
    (value) => value === false || isIntegerWithin(value, 1, MAX_MS),
    `must be false or an integer from 1 to ${MAX_MS}.`,
  )
  timeoutMs?: number | false;

  /** Milliseconds that running turns get to finish when the application stops. Default 10,000. */
  @Optional()
  @MustBeInteger(0, 3_600_000)
  shutdownGraceMs?: number;
}
