import { type AcceptTurn, type ClaimRequest } from 'nestjs-agent-sessions/adapter';

/** Default requests to the ledger, for session `s`. */
export function turnRequest(id: string, changes: Partial<AcceptTurn> = {}): AcceptTurn {
  return {
    id,
    sessionId: 's',
    orchestrator: 'desk',
    version: '1',
    request: { input: { text: 'hello' } },
    attributes: {},
    whenBusy: 'enqueue',
    maxQueued: 100,
    ...changes,
  };
}

/** Returns a claim with a lease longer than any test runs. */
export function claimRequest(holder: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return { holder, leaseMs: 600_000, maxLost: 3, windows: {}, ...changes };
}
