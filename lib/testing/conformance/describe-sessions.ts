import { describeSessionContents } from './describe-session-contents.js';
import { describeSessionEnd } from './describe-session-end.js';
import { describeSessionLifecycle } from './describe-session-lifecycle.js';
import { describeSessionOwners } from './describe-session-owners.js';
import { describeSessionQueries } from './describe-session-queries.js';
import { describeSessionRaces } from './describe-session-races.js';
import { describeSessionRemoval } from './describe-session-removal.js';
import { describeSessionSlots } from './describe-session-slots.js';
import { describeSessionSweep } from './describe-session-sweep.js';
import { type ConformanceContext } from './target.js';

/** Tests of AtomicSessionStoreAdapter. */
export function describeSessions(context: ConformanceContext): void {
  describe('sessions', () => {
    describeSessionLifecycle(context);
    describeSessionContents(context);
    describeSessionSlots(context);
    describeSessionSweep(context);
    describe('end', () => describeSessionEnd(context));
    describeSessionQueries(context);
    describeSessionRemoval(context);
    describeSessionOwners(context);
    describeSessionRaces(context);
  });
}
