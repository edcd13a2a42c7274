import { AsyncLocalStorage } from 'node:async_hooks';
import { type HandedPromises } from './handed-promises.js';
import { type Session, type SessionIdentity } from '../ledger/session.js';
import { type AwaitedTurn, type TurnLedger } from '../ledger/turn.store.js';
import { TurnReentryError } from '../ledger/turn.errors.js';
import { requestSession } from '../session/request-session.js';
import { type Awaits, type HandlerWaits } from './handler-waits.js';

/**
 * The turn that the current code runs in. Connections and timers that a handler leaves behind keep this object alive.
 * It must not reference the turn, and is emptied when the turn has ended.
 */
export interface RunningTurn {
  /** Empty when the turn has ended. */
  turnId: string;
  /**
   * Its session, and the ledger of its application; `null` if the session is in an external store, or when the handler has
   * returned. Set until then, even if the turn ends earlier: the handler must not write to another session that gets the
   * same id.
   */
  session: (Pick<Session, 'id' | 'createdAt' | 'userId'> & { readonly ledger: object }) | null;
  /** The ledger of its application; `null` when the turn has ended. */
  ledger: Pick<TurnLedger, 'get'> | null;
  /**
   * The turn's session and those of the handlers that wait for it, directly or indirectly; empty when the turn has
   * ended.
   */
  waitingSessions: readonly string[];
  /** The waits of its handler for other turns; `null` when the turn has ended. */
  waits: HandlerWaits | null;
  /** The promises that its handler received; `null` when the handler has returned. */
  promises: HandedPromises | null;
  /** Set within a call of this package: its inner calls must reject, so that it can clean up. */
  readonly isInner?: boolean;
  /** See `AttemptHandle.onChildTurn`; `null` when the turn has ended. */
  beforeChildTurn: (() => Promise<unknown> | null) | null;
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();

/**
 * Returns sessions whose running turns wait for the current code: their next turns could not start before it ends.
 */
export function waitingSessions(): readonly string[] {
  return runningTurn.getStore()?.waitingSessions ?? [];
}

/**
 * Returns a function that returns the session of the turn that the current code runs in, if it has the given id.
 * @param ledger of the application that calls the function: the same id may be another session in another one
 */
export function ownSession(ledger: object): (sessionId: string) => SessionIdentity | null {
  return (sessionId) => {
    const session = runningTurn.getStore()?.session;
    if (session?.id !== sessionId || session.ledger !== ledger) return null;
    const { createdAt, userId } = session;
    return { createdAt, userId };
  };
}

/**
 * Returns a function that returns the session of the turn or of the request that the current code works for, if it has the
 * given id.
 * @param store the `SessionStore` of the application that calls the function, and `ledger` its ledger
 */
export function knownSession(ledger: object, store: object): (sessionId: string) => SessionIdentity | null {
  const [ofTurn, ofRequest] = [ownSession(ledger), requestSession(store)];
  return (sessionId) => ofTurn(sessionId) ?? ofRequest(sessionId);
}

/** The handler that waits for another turn. */
export interface WaitingCaller {
  /** Sessions whose next turns cannot start before the awaited turn has ended. */
  readonly sessions: readonly string[];
  readonly awaits: Awaits | undefined;
}

const NO_CALLER: WaitingCaller = { sessions: [], awaits: undefined };

/**
 * Waits for another turn; in a handler, through {@link HandlerWaits}.
 * @param ledger of the awaited turn
 * @throws ProcessLimitError, TurnReentryError
 */
export function waitForTurn<T>(
  ledger: Pick<TurnLedger, 'get'>,
  wait: (caller: WaitingCaller) => Promise<T>,
): Promise<T> {
  const running = runningTurn.getStore();
  if (!running?.waits) return wait(NO_CALLER);
  return running.waits.during(async (awaits) => {
    const isKnown = await isIn(ledger, running);
    return wait(isKnown ? { sessions: running.waitingSessions, awaits } : NO_CALLER);
  });
}

/**
 * Returns true if the ledger has the running turn. Another application of this process may have another store, in which
 * the same session id is another session (FIX-91).
 */
async function isIn(ledger: Pick<TurnLedger, 'get'>, { turnId, ledger: own }: RunningTurn): Promise<boolean> {
  return own === ledger || (own !== null && (await ledger.get(turnId)) !== null);
}

/** @throws TurnReentryError if the session's next turn could not start before the caller's turn ends */
export function assertNoReentry(sessionId: string, { sessions }: WaitingCaller): void {
  if (sessions.includes(sessionId)) throw new TurnReentryError(sessionId);
}

/**
 * Begins a wait for another turn, until the returned function is called. That resolves when the handler may continue.
 * Outside of handlers, and for the handler's own turn, this does nothing.
 * @param ledger of the awaited turn
 * @throws ProcessLimitError, TurnReentryError
 */
export async function beginWait(ledger: Pick<TurnLedger, 'get'>, turn: AwaitedTurn): Promise<() => Promise<void>> {
  const running = runningTurn.getStore();
  if (!running?.waits || running.turnId === turn.turnId) return () => Promise.resolve();
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let wait = Promise.resolve();
  await new Promise<void>((begun, refuse) => {
    wait = waitForTurn(ledger, async (caller) => {
      assertNoReentry(turn.sessionId, caller);
      await caller.awaits?.(turn);
      begun();
      await ended;
    });
    wait.catch(refuse);
  });
  return () => {
    end();
    return wait;
  };
}

/**
 * Returns a promise to await before a turn is accepted: if a handler submits the turn, its own route must be stored first
 * (FIX-81). `null` if nothing must be awaited.
 */
export function beforeChildTurn(): Promise<unknown> | null {
  return runningTurn.getStore()?.beforeChildTurn?.() ?? null;
}

/**
 * Calls a function whose promise is returned to the application. In a handler, a rejection that is not awaited does not
 * end the process, see {@link HandedPromises}.
 * @param call its name in the log
 */
export function handOut<T>(call: string, work: () => Promise<T>): Promise<T> {
  const turn = runningTurn.getStore();
  if (!turn?.promises || turn.isInner) return work();
  // A view, because the turn is emptied when it has ended.
  const inner = Object.create(turn, { isInner: { value: true } }) as RunningTurn;
  return turn.promises.handFree(call, runningTurn.run(inner, work));
}
