import { describeLaneControl } from './describe-lane-control.js';
import { describeLaneQueries } from './describe-lane-queries.js';
import { describeTurnsAccept } from './describe-turns-accept.js';
import { describeTurnsAwaited } from './describe-turns-awaited.js';
import { describeTurnsBegun } from './describe-turns-begun.js';
import { describeTurnsBusy } from './describe-turns-busy.js';
import { describeTurnsCancel } from './describe-turns-cancel.js';
import { describeTurnsCancelRaces } from './describe-turns-cancel-races.js';
import { describeTurnsClaim } from './describe-turns-claim.js';
import { describeTurnsClaimedAtOnce } from './describe-turns-claimed-at-once.js';
import { describeTurnsDocuments } from './describe-turns-documents.js';
import { describeTurnsDue } from './describe-turns-due.js';
import { describeTurnsEndOfSession } from './describe-turns-end-of-session.js';
import { describeTurnsFence } from './describe-turns-fence.js';
import { describeTurnsIdempotency } from './describe-turns-idempotency.js';
import { describeTurnsLost } from './describe-turns-lost.js';
import { describeTurnsPurge } from './describe-turns-purge.js';
import { describeTurnsRevoke } from './describe-turns-revoke.js';
import { describeTurnsRetry } from './describe-turns-retry.js';
import { describeTurnsSettle } from './describe-turns-settle.js';
import { describeTurnsUsage } from './describe-turns-usage.js';
import { describeTurnsWait } from './describe-turns-wait.js';
import { type ConformanceContext } from './target.js';

/** Tests of the turn ledger's transition table and guarantees (TRN-01 to TRN-13), directly on the port. */
export function describeTurns(context: ConformanceContext): void {
  describe('turns', () => {
    describe('accept', () => describeTurnsAccept(context));
    describe('idempotency', () => describeTurnsIdempotency(context));
    describe('busy', () => describeTurnsBusy(context));
    describe('busy with a turn that is queued again', () => describeTurnsBegun(context));
    describe('claim', () => describeTurnsClaim(context));
    describe('accept that claims', () => describeTurnsClaimedAtOnce(context));
    describe('exclusion', () => describeTurnsFence(context));
    describe('settle', () => describeTurnsSettle(context));
    describe('documents', () => describeTurnsDocuments(context));
    describe('usage', () => describeTurnsUsage(context));
    describe('retry and release', () => describeTurnsRetry(context));
    describe('lost attempts', () => describeTurnsLost(context));
    describe('wait and signal', () => describeTurnsWait(context));
    describe('awaited turns', () => describeTurnsAwaited(context));
    describe('cancel', () => describeTurnsCancel(context));
    describe('concurrent cancel', () => describeTurnsCancelRaces(context));
    describe('end of the session', () => describeTurnsEndOfSession(context));
    describe('revoke', () => describeTurnsRevoke(context));
    describe('due', () => describeTurnsDue(context));
    describe('purge', () => describeTurnsPurge(context));
    describe('lane control', () => describeLaneControl(context));
    describe('lane queries', () => describeLaneQueries(context));
  });
}
