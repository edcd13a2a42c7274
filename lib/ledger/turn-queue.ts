import { type InjectionToken } from '@nestjs/common';
import { hasMethods } from '../common/has-methods.js';

/** Finds a provider in any module of the application. @inline */
export type FindProvider = <T>(token: InjectionToken) => T | null;

/** The slot that a visit holds among those that run at once. */
export interface VisitSlot {
  /** Lets another visit begin while this one waits for the turn of another session. Follow with `take`. */
  release(): void;
  /** Resolves when the visit holds a slot again, before visits that have not begun, or when the visit has ended. */
  take(): Promise<void>;
}

/** Visits a lane. @param slot left out: the visit keeps its slot until it ends */
export type LaneVisit = (sessionId: string, slot?: VisitSlot) => Promise<void>;

/** Room for one visit of a lane that nobody has to ring for. */
export interface VisitPlace {
  /** Begins the visit, outside whatever request is going on; the place is free again when it has ended. */
  visit(visit: (slot?: VisitSlot) => Promise<void>): void;
  /** Frees the place: there is nothing to do. */
  leave(): void;
}

/** A doorbell, nothing more: says that a session has work. What it loses or repeats cannot lose or reorder a turn. */
export interface TurnQueue {
  /** Called once, when the application's modules are there and before anything else. */
  init?(find: FindProvider): Promise<void>;
  /**
   * @param delayMs not before this many milliseconds; default 0
   * @throws when the queue cannot be reached; the lane is then found by the reconciler
   */
  ring(sessionId: string, delayMs?: number): Promise<void>;
  /**
   * From now on, calls the handler for rung sessions, in parallel; twice at once for one of them does no harm. A queue that
   * limits how many run at once gives each call its slot: without it, handlers that wait for each other's turns can take up
   * all slots until they time out.
   */
  process(handler: LaneVisit): Promise<void>;
  /**
   * Keeps room in this process for a visit of the lane that needs no ring: its turn is claimed as it is accepted. It counts like
   * a call of the handler, and `close` waits for it. `null` unless the handler could be called for that session right now, and
   * no other session waits for that. Without this method every visit is rung for.
   */
  reserve?(sessionId: string): VisitPlace | null;
  /** Starts no more calls of the handler. */
  pause(): Promise<void>;
  /** Goes on after `pause`. */
  resume(): Promise<void>;
  /** Pauses, waits for the handlers that run, and lets go of everything. */
  close(): Promise<void>;
  /**
   * Resolves when the queue answers: for health checks, and for a process whose ring was not heard, which leaves lanes to
   * others until then. Without it none does.
   */
  ping?(): Promise<void>;
}

export function isTurnQueue(value: unknown): value is TurnQueue {
  return hasMethods(value, ['ring', 'process', 'pause', 'resume', 'close']);
}
