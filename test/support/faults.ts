import { type AtomicSessionStoreAdapter, type ClaimedTurn, type SessionsAdapter } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from './eventually.js';
import { claimRequest, turnRequest } from './ledger-requests.js';

/** Opens the store and makes a session with a turn that runs. */
export async function openWithTurn(store: SessionsAdapter, sessionId: string): Promise<ClaimedTurn> {
  await store.init?.();
  const draft = { id: sessionId, userId: 'ann', attachedSurfaces: [], metadata: {} };
  await (store.sessions as AtomicSessionStoreAdapter).create(draft, { policy: 'share', maxSurfaces: 1 });
  await store.turns.accept(turnRequest(mintId(), { sessionId }));
  const claimed = await store.turns.claim(sessionId, claimRequest('a'));
  if (!claimed) throw new Error('Nothing was claimed.');
  return claimed;
}

/** Tries until it does not throw. */
export async function succeeds(work: () => Promise<unknown>, limitMs = 10_000): Promise<void> {
  let last: unknown;
  const attempt = async (): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      last = error;
      return false;
    }
  };
  await eventually(attempt, { limitMs }).catch((error: Error) => {
    throw new Error(error.message, { cause: last });
  });
}

/** What a store says that could not do it: certainly not done, or nobody knows. */
export function unavailable(maybeApplied: boolean): { code: string; maybeApplied: boolean } {
  return { code: 'STORE_UNAVAILABLE', maybeApplied };
}
