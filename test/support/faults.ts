import { SessionConflictError, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type ClaimedTurn } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from './eventually.js';
import { claimRequest, turnRequest } from './ledger-requests.js';

/**
 * Opens the store and creates a session with a running turn. On a stalled machine an operation may time out, and
 * is sent again.
 */
export async function openWithTurn(store: SessionsAdapter, sessionId: string): Promise<ClaimedTurn> {
  await succeeds(async () => store.init?.());
  const draft = { id: sessionId, userId: 'ann', attachedSurfaces: [], metadata: {} };
  await succeeds(async () => {
    const created = (store.sessions as AtomicSessionStoreAdapter).create(draft, { policy: 'share', maxSurfaces: 1 });
    await created.catch((error: unknown) => {
      if (!(error instanceof SessionConflictError)) throw error;
    });
  });
  const request = turnRequest(mintId(), { sessionId });
  await succeeds(() => store.turns.accept(request));
  return succeeds(async () => {
    const claimed = await store.turns.claim(sessionId, claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed;
  });
}

/** Retries until the call does not throw. */
export async function succeeds<T>(work: () => Promise<T>, limitMs = 10_000): Promise<T> {
  let last: unknown;
  const attempt = async (): Promise<{ result: T } | null> => {
    try {
      return { result: await work() };
    } catch (error) {
      last = error;
      return null;
    }
  };
  const { result } = await eventually(attempt, { limitMs }).catch((error: Error) => {
    throw new Error(error.message, { cause: last });
  });
  return result;
}

/** Matches the error of an unavailable store. `maybeApplied` is false if the write certainly did not happen. */
export function unavailable(maybeApplied: boolean): { code: string; maybeApplied: boolean } {
  return { code: 'STORE_UNAVAILABLE', maybeApplied };
}
