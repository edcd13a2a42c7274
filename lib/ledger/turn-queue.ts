import { type InjectionToken } from '@nestjs/common';
import { missingMethod, type RequiredMethods } from '../common/required-methods.js';

/** Finds a provider in any module of the application. @inline */
export type FindProvider = <T>(token: InjectionToken) => T | null;

/** The concurrency slot of a visit. */
export interface VisitSlot {
  /** Frees the slot while this visit waits for the turn of another session. Follow with `take`. */
  release(): void;
  /** Resolves when the visit holds a slot again, with priority over new visits, or when the visit has ended. */
  take(): Promise<void>;
}

/** Visits a lane. @param slot absent: the visit keeps its slot until it ends */
export type LaneVisit = (sessionId: string, slot?: VisitSlot) => Promise<void>;

/** A slot reserved for a visit that needs no notification. */
export interface ReservedSlot {
  /** Starts the visit, outside the context of the current request. The slot is free when the visit has ended. */
  visit(visit: (slot?: VisitSlot) => Promise<void>): void;
  /** Frees the slot without a visit. */
  release(): void;
}

/** Notifies workers that a session has work. Lost or repeated notifications cannot lose or reorder a turn. */
export interface TurnQueue {
  /** Names the queue and where it is, for the log at start (DAY-15), without a user and a password. Default: `custom`. */
  readonly label?: string;
  /** The number of visits that it runs at the same time. If it is set, `turns.concurrency` is rejected. */
  readonly concurrency?: number;
  /** Called once, before all other methods and before the `onModuleInit` hooks of the application. */
  init?(find: FindProvider): Promise<void>;
  /**
   * Notifies workers of a session.
   * @param delayMs minimum delay in milliseconds; default 0
   * @param overdue the lane has waited already: its worker or an earlier notification was lost. A queue may serve such
   * lanes in turn with the others, instead of after them (FIX-83). Default: false
   * @throws if the queue cannot be reached; the reconciler then finds the lane
   */
  notify(sessionId: string, delayMs?: number, overdue?: boolean): Promise<void>;
  /**
   * Starts calling the handler for notified sessions, in parallel. Two concurrent calls for one session are harmless. A
   * queue that limits concurrency passes each call its slot. Otherwise, handlers that wait for each other's turns can
   * block all slots until they time out.
   */
  process(handler: LaneVisit): Promise<void>;
  /**
   * Reserves a slot of this process for a visit without a notification, because the turn is claimed when it is
   * accepted. The slot counts like a call of the handler, and `close` waits for it. Returns `null` unless the handler
   * could be called for the session now and no other session waits. Without this method, every visit needs a
   * notification.
   */
  reserve?(sessionId: string): ReservedSlot | null;
  /** Starts no more calls of the handler. */
  pause(): Promise<void>;
  /** Resumes after `pause`. */
  resume(): Promise<void>;
  /** Pauses, waits for running handlers, and releases all resources. */
  close(): Promise<void>;
  /**
   * Resolves when the queue answers. Used by health checks, and by a process whose notification failed: its reconciler
   * leaves due lanes to other processes until the queue answers. Without this method, it does not wait.
   */
  ping?(): Promise<void>;
}

const QUEUE_METHODS: RequiredMethods<TurnQueue> = {
  notify: true,
  process: true,
  pause: true,
  resume: true,
  close: true,
};

/** Returns the first method that a queue lacks. */
export function missingOfQueue(value: unknown): string | undefined {
  return missingMethod(value, QUEUE_METHODS);
}
