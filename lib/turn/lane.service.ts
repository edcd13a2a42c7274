import { setTimeout as delay } from 'node:timers/promises';
import { checkInput } from '../common/check-input.js';
import { assertId } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { DrainOptions, LaneListQuery, type LaneScope } from './lane.inputs.js';
import { type Lane, type LaneMode, type LanePage } from '../ledger/lane.js';
import { type AwaitedTurn } from '../ledger/turn.store.js';
import { assertNoReentry, handOut, waitForTurn } from './running-turn.js';
import { type TurnDependencies } from './turn-dependencies.js';

/** Page size for reading all lanes. */
const PAGE = 500;
/** How often a drain checks for open turns. */
const POLL_MS = 100;

/**
 * Pauses, drains, resumes and inspects lanes, for every process that shares the store (TRN-11). `{ sessionId }` is one
 * lane, `{ all: true }` every lane. The mode of all lanes is stored separately: a lane that was paused itself remains
 * paused when all lanes are resumed.
 */
export class LaneService {
  /** @hidden */
  constructor(
    private readonly dependencies: Pick<
      TurnDependencies,
      'ledger' | 'notifier' | 'recovery' | 'sessions' | 'foreignSessions' | 'start'
    >,
  ) {}

  /**
   * Counts of turns from lost workers that this process has recovered, at its start and since; all zero if it runs no
   * turns. Repeated offers count once (BOT-32).
   */
  get recovery(): {
    /** Turns of lost workers that this process has attempted, each counted once. */
    readonly resumed: number;
    /**
     * Turns whose orchestrator this process does not have, or only in an older version; notified lanes without work.
     */
    readonly skipped: number;
    /** Resumed turns that then failed permanently here; lanes that could not be claimed because of a store error. */
    readonly failed: number;
  } {
    return this.dependencies.recovery.counts;
  }

  /**
   * Stops claims of turns in every process. With `all`, it applies to claims that begin from now on. Running turns
   * continue, and messages are still accepted and queued. Ends a drain.
   * @throws InvalidInputError, SessionNotFoundError
   */
  async pause(scope: LaneScope): Promise<void> {
    await this.control(scope, 'paused');
  }

  /**
   * Rejects new turns with LaneDrainingError until `resume`, and lets open turns finish. A known idempotency key still
   * returns its turn. Ends a pause.
   * @param options.timeoutMs how long to wait until no turn is open. Default 0: only checks. In a handler, this counts
   * as a wait for other turns
   * @returns true if no turn is open: queued, running or waiting
   * @throws InvalidInputError, SessionNotFoundError; SessionsConfigurationError for a wait before the application has
   * started (FIX-71); in a handler also ProcessLimitError, and TurnReentryError if one of the turns cannot end before
   * the handler
   */
  drain(scope: LaneScope, options: DrainOptions = {}): Promise<boolean> {
    return handOut('turns.lanes.drain', async () => {
      const { timeoutMs = 0 } = checkInput(DrainOptions, options, 'options');
      if (timeoutMs > 0) this.dependencies.start.assertWait('The end of a drain');
      await this.control(scope, 'draining');
      const sessionId = sessionOf(scope);
      return timeoutMs === 0 ? !(await this.firstOpen(sessionId)) : this.untilEmpty(sessionId, timeoutMs);
    });
  }

  /**
   * Ends `pause` and `drain`. A single lane continues at once. With `all`, each lane continues when a reconciler finds
   * it, as after a lost notification.
   * @throws InvalidInputError, SessionNotFoundError
   */
  async resume(scope: LaneScope): Promise<void> {
    await this.control(scope, 'open');
  }

  /**
   * Cancels queued and waiting turns, as `TurnService.cancel` does; running turns continue. With `all`, lanes are
   * cleared one after the other, and lanes that get their first turn in the meantime are not included.
   * @returns the number of cancelled turns
   * @throws InvalidInputError
   */
  async clear(scope: LaneScope): Promise<number> {
    const sessionId = sessionOf(scope);
    if (sessionId !== null) return this.dependencies.ledger.clear(sessionId);
    let cancelled = 0;
    for await (const { lanes } of this.pages()) {
      for (const lane of lanes) cancelled += await this.dependencies.ledger.clear(lane.sessionId);
    }
    return cancelled;
  }

  /** Returns the lane of a session, even if the session is idle or unknown. */
  async get(sessionId: string): Promise<Lane> {
    assertId(sessionId, 'sessionId');
    return this.dependencies.ledger.lane(sessionId);
  }

  /**
   * Lists lanes with open turns, by session id. Pass the last id as `after` to get the next page. `mode` is the mode of
   * all lanes.
   */
  async list(query: LaneListQuery = {}): Promise<{ readonly mode: LaneMode; readonly lanes: readonly Lane[] }> {
    return this.dependencies.ledger.lanes({ ...checkInput(LaneListQuery, query, 'query') });
  }

  /** Counts the open turns of all lanes. Lanes are read page by page, so the counts are not from a single moment. */
  async counts(): Promise<{
    /** The mode set for all lanes. */
    readonly mode: LaneMode;
    /** The number of lanes with open turns. */
    readonly lanes: number;
    readonly queued: number;
    readonly running: number;
    readonly waiting: number;
    /** When the longest queued turn was accepted, ISO-8601 by the store's clock; `null` if no turn is queued. */
    readonly queuedSince: string | null;
  }> {
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
    const { ledger, notifier, foreignSessions, sessions } = this.dependencies;
    const sessionId = sessionOf(scope);
    if (sessionId !== null && foreignSessions && !(await sessions.get(sessionId))) {
      throw new SessionNotFoundError(sessionId);
    }
    const { notify } = await ledger.control({ sessionId, mode, ...(foreignSessions ? { foreignSession: true } : {}) });
    if (notify && sessionId !== null) await notifier.notify(sessionId);
  }

  private untilEmpty(sessionId: string | null, timeoutMs: number): Promise<boolean> {
    const end = performance.now() + timeoutMs;
    return waitForTurn(this.dependencies.ledger, async (caller) => {
      // All lanes include the handler's.
      for (const waiting of sessionId === null ? caller.sessions : [sessionId]) assertNoReentry(waiting, caller);
      for (let awaited: string | undefined; ;) {
        const open = await this.firstOpen(sessionId);
        if (!open) return true;
        const left = end - performance.now();
        if (left <= 0) return false;
        if (open.turnId !== awaited) await caller.awaits?.(open);
        awaited = open.turnId;
        await delay(Math.min(POLL_MS, left));
      }
    });
  }

  /** Returns the first open turn of a lane, or of any lane. */
  private async firstOpen(sessionId: string | null): Promise<AwaitedTurn | undefined> {
    const { ledger } = this.dependencies;
    const lane = sessionId === null ? (await ledger.lanes({ limit: 1 })).lanes.at(0) : await ledger.lane(sessionId);
    return lane?.head && { sessionId: lane.sessionId, turnId: lane.head.id };
  }

  private async *pages(): AsyncGenerator<LanePage> {
    let after = '';
    for (;;) {
      const page = await this.dependencies.ledger.lanes({ after, limit: PAGE });
      yield page;
      if (page.lanes.length < PAGE) return;
      after = page.lanes[PAGE - 1].sessionId;
    }
  }
}

/** @returns the session, or `null` for all lanes. Rejects other scopes, so that a typo never selects all lanes */
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
