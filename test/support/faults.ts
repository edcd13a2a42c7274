import {
  type AtomicSessionStoreAdapter,
  type ClaimedTurn,
  SessionConflictError,
  type SessionsAdapter,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from './eventually.js';
import { claimRequest, turnRequest } from './ledger-requests.js';

/**
 * Opens the store and makes a session with a turn that runs. On a machine that stands still an operation may have no answer in
 * its time, and is sent again.
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

/** Tries until it does not throw. */
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

/** What a store says that could not do it: certainly not done, or nobody knows. */
export function unavailable(maybeApplied: boolean): { code: string; maybeApplied: boolean } {
  return { code: 'STORE_UNAVAILABLE', maybeApplied };
}
