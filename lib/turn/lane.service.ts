import { setTimeout as delay } from 'node:timers/promises';
import { checkInput } from '../common/check-input.js';
import { assertId } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { DrainOptions, LaneListQuery, type LaneScope } from './lane.inputs.js';
import { type Lane, type LaneMode, type LanePage } from '../ledger/lane.js';
import { type RecoveryCounts } from './turn-recovery.js';
import { type TurnRuntime } from './turn-runtime.js';

/** Lanes that are read at once where all are walked through. */
const PAGE = 500;
/** How often a drain looks whether something is left. */
const POLL_MS = 100;

/** How many turns are open, over all lanes. */
export interface LaneCounts {
  /** Of all lanes. */
  readonly mode: LaneMode;
  /** Lanes that have open turns. */
  readonly lanes: number;
  readonly queued: number;
  readonly running: number;
  readonly waiting: number;
  /** When the longest queued turn was accepted, ISO-8601 by the store's clock; `null` when none is queued. */
  readonly queuedSince: string | null;
}

/**
 * Holds lanes and looks at them (TRN-11), in every process that shares the store. One lane is `{ sessionId }`, every lane
 * `{ all: true }`. What is said of all lanes is kept besides what is said of one: a lane that is paused itself stays so when
 * all are resumed.
 */
export class LaneService {
  /** @hidden */
  constructor(private readonly runtime: TurnRuntime) {}

  /** What this process has done about turns that others left behind, at its start and since; all zero where it runs no turns. */
  get recovery(): RecoveryCounts {
    return this.runtime.recovery.counts;
  }

  /**
   * No turn is claimed from now on, in any process; with `all`, by no claim that begins from now on. What runs goes on, and
   * messages are still accepted and queued. Ends a drain.
   * @throws InvalidInputError, SessionNotFoundError
   */
  async pause(scope: LaneScope): Promise<void> {
    await this.control(scope, 'paused');
  }

  /**
   * No further turn is accepted (LaneDrainingError), those that are known already still answer; what is there runs to its
   * end. Ends a pause. Stays so until `resume`.
   * @param options.timeoutMs how long to wait until nothing is open; default 0: only looks
   * @returns whether nothing is open any more: queued, running or waiting
   * @throws InvalidInputError, SessionNotFoundError
   */
  async drain(scope: LaneScope, options: DrainOptions = {}): Promise<boolean> {
    const { timeoutMs = 0 } = checkInput(DrainOptions, options, 'options');
    await this.control(scope, 'draining');
    const sessionId = sessionOf(scope);
    const end = performance.now() + timeoutMs;
    while (!(await this.isEmpty(sessionId))) {
      const left = end - performance.now();
      if (left <= 0) return false;
      await delay(Math.min(POLL_MS, left));
    }
    return true;
  }

  /**
   * Undoes `pause` and `drain`. A lane goes on at once; with `all`, each as soon as a reconciler finds it, as after a lost ring.
   * @throws InvalidInputError, SessionNotFoundError
   */
  async resume(scope: LaneScope): Promise<void> {
    await this.control(scope, 'open');
  }

  /**
   * Cancels what is queued or waiting, as `TurnService.cancel` does; a running turn goes on. With `all`, one lane after the
   * other, without those that get their first turn meanwhile.
   * @returns how many turns
   * @throws InvalidInputError
   */
  async clear(scope: LaneScope): Promise<number> {
    const sessionId = sessionOf(scope);
    if (sessionId !== null) return this.runtime.ledger.clear(sessionId);
    let cancelled = 0;
    for await (const { lanes } of this.pages()) {
      for (const lane of lanes) cancelled += await this.runtime.ledger.clear(lane.sessionId);
    }
    return cancelled;
  }

  /** The lane of a session, also of one that is idle or unknown. */
  async get(sessionId: string): Promise<Lane> {
    assertId(sessionId, 'sessionId');
    return this.runtime.ledger.lane(sessionId);
  }

  /** Lanes that have open turns, by session id; the next page begins `after` the last one. */
  async list(query: LaneListQuery = {}): Promise<LanePage> {
    return this.runtime.ledger.lanes({ ...checkInput(LaneListQuery, query, 'query') });
  }

  /** Over all lanes that have open turns: reads them page by page, so that each is counted as it was at its moment. */
  async counts(): Promise<LaneCounts> {
    const statuses = { queued: 0, running: 0, waiting: 0 };
    let mode: LaneMode = 'open';
    let lanes = 0;
    let queuedSince: string | null = null;
    for await (const page of this.pages()) {
      mode = page.mode;
      lanes += page.lanes.length;
      for (const lane of page.lanes) {
        statuses.queued += lane.queued;
        if (lane.head?.status === 'running') statuses.running += 1;
        if (lane.head?.status === 'waiting') statuses.waiting += 1;
        if (lane.queuedSince && (queuedSince === null || lane.queuedSince < queuedSince))
          queuedSince = lane.queuedSince;
      }
    }
    return { mode, lanes, ...statuses, queuedSince };
  }

  private async control(scope: LaneScope, mode: LaneMode): Promise<void> {
    const { ledger, bell, foreignSessions, sessions } = this.runtime;
    const sessionId = sessionOf(scope);
    if (sessionId !== null && foreignSessions && !(await sessions.get(sessionId))) {
      throw new SessionNotFoundError(sessionId);
    }
    const { ring } = await ledger.control({ sessionId, mode, ...(foreignSessions ? { foreignSession: true } : {}) });
    if (ring && sessionId !== null) await bell.ring(sessionId);
  }

  private async isEmpty(sessionId: string | null): Promise<boolean> {
    if (sessionId !== null) return (await this.runtime.ledger.lane(sessionId)).head === undefined;
    return (await this.runtime.ledger.lanes({ limit: 1 })).lanes.length === 0;
  }

  private async *pages(): AsyncGenerator<LanePage> {
    let after = '';
    for (;;) {
      const page = await this.runtime.ledger.lanes({ after, limit: PAGE });
      yield page;
      if (page.lanes.length < PAGE) return;
      after = page.lanes[PAGE - 1].sessionId;
    }
  }
}

/** @returns the session, or `null` for all; never more than was asked for */
function sessionOf(scope: unknown): string | null {
  if (isFields(scope) && Object.keys(scope).length === 1) {
    if (scope.all === true) return null;
    if ('sessionId' in scope) {
      assertId(scope.sessionId, 'scope.sessionId');
      return scope.sessionId;
    }
  }
  throw new InvalidInputError('scope', 'must be { sessionId } or { all: true }.');
}
