import { Allow } from 'class-validator';
import { isIntegerWithin, Must, MustBeInteger, Optional } from '../common/check-input.js';
import { MAX_SECONDS } from '../common/seconds.js';
import { isTurnQueue, type TurnQueue } from '../ledger/turn-queue.js';
import { WHEN_BUSY, type WhenBusy } from '../ledger/turn.js';

/** As long as a timer of Node can wait. */
const MAX_MS = 2_147_483_647;

/** Pauses between the attempts of a turn. */
export class BackoffOptions {
  /** `exponential` (default) doubles with each failure. */
  @Optional()
  @Must((value) => value === 'fixed' || value === 'exponential', 'must be fixed or exponential.')
  type?: 'fixed' | 'exponential';

  /** Milliseconds before the second attempt. Default 500. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  delayMs?: number;

  /** Milliseconds up to which exponential delays grow. Default 60,000. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxDelayMs?: number;
}

/** How often a turn is tried, and what lies between two attempts. */
export class RetryOptions {
  /** Attempts of a turn that may fail; the last failure ends the turn. Default 3. */
  @Optional()
  @MustBeInteger(1, 1000)
  attempts?: number;

  /** Attempts of a turn that may be lost with their process; the last loss ends the turn as WORKER_LOST. Default 5. */
  @Optional()
  @MustBeInteger(1, 1000)
  maxLost?: number;

  /** The pauses between two attempts. Default: exponential, from half a second to a minute. */
  @Allow()
  backoff?: BackoffOptions;
}

/** How what handlers emit is stored. */
export class TurnEventsOptions {
  /** Seconds for which a turn's events stay once it is over; never longer than the turn itself. Default 3,600. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  ttlSeconds?: number;

  /** Milliseconds for which events are collected before they are stored together. Default 25. */
  @Optional()
  @MustBeInteger(0, 10_000)
  batchMs?: number;

  /** Bytes of events, as JSON, that are stored without waiting for more. Default 4,096. */
  @Optional()
  @MustBeInteger(1, 262_144)
  batchBytes?: number;
}

/** How turns are queued, run and tried again. */
export class TurnsOptions {
  /** What says that a session has work. Default: a queue in this process. */
  @Optional()
  @Must(isTurnQueue, 'must be a TurnQueue with ring, process, pause, resume and close.')
  queue?: TurnQueue;

  /** Sessions whose turns this process runs at once, with the default queue. Default 32. */
  @Optional()
  @MustBeInteger(1, 10_000)
  concurrency?: number;

  /**
   * Handlers of this process that may wait for other turns at once. They hold no slot of `concurrency`, but stay in memory;
   * one more gets TooManyWaitingParentsError. Default 1,000.
   */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxWaitingParents?: number;

  /** What to do when a message arrives while the session is busy. Default `enqueue`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;

  /** Queued turns that a session may have. Default 100. */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxQueuedPerSession?: number;

  /** Bytes that one input may take as JSON. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxInputBytes?: number;

  /** Bytes that the result of a step or of a tool call may take as JSON. Default 4,194,304 (4 MiB). */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxStepBytes?: number;

  /**
   * Bytes that a reply with its `data`, a message that a turn adds, and the decision of a route may each take as JSON. Default
   * 1,048,576 (1 MiB).
   */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxReplyBytes?: number;

  /** How often a turn is tried. Default: three times. */
  @Allow()
  retry?: RetryOptions;

  /**
   * How what handlers emit is stored; `false`: it is not, and streams have the terminal event only. Default: those of each
   * option.
   */
  @Allow()
  events?: false | TurnEventsOptions;

  /** Milliseconds for which a worker holds a turn without renewing; a lost worker's lane waits this long. Default 10,000. */
  @Optional()
  @MustBeInteger(100, 3_600_000)
  leaseMs?: number;

  /** How often lanes that need attention are looked for, in milliseconds. Default 1,000. */
  @Optional()
  @MustBeInteger(10, 3_600_000)
  reconcileMs?: number;

  /** Seconds for which an idempotency key is remembered after its turn settled. Default 86,400 (a day). */
  @Optional()
  @MustBeInteger(1, 31_536_000)
  idempotencySeconds?: number;

  /**
   * Milliseconds that one attempt of a turn may take; then its AbortSignal is aborted and it counts as failed. Waiting for a
   * signal does not count. `false`: no limit. Default 900,000 (15 minutes).
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
