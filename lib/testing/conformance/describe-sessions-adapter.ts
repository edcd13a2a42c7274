import { describeCheckpoints } from './describe-checkpoints.js';
import { describeConversations } from './describe-conversations.js';
import { describeDocuments } from './describe-documents.js';
import { describeLeases } from './describe-leases.js';
import { describeSessions } from './describe-sessions.js';
import { describeTurns } from './describe-turns.js';
import { type ConformanceTarget, contextOf } from './target.js';

/**
 * The conformance suite that every store must pass (NST-26). Uses the test runner's globals only: `describe`, `it`,
 * `beforeAll`, `afterAll` and `expect` as jest and vitest have them.
 *
 * ```ts
 * describeSessionsAdapter('my store', async () => ({ adapter: myAdapter({ ... }) }));
 * ```
 * @param open makes an empty store; called once
 */
export function describeSessionsAdapter(
  name: string,
  open: () => ConformanceTarget | Promise<ConformanceTarget>,
): void {
  describe(name, () => {
    let target: ConformanceTarget;
    const context = contextOf(() => target);

    beforeAll(async () => {
      target = await open();
      await target.adapter.init?.();
    });

    afterAll(async () => {
      await target.adapter.close?.();
    });

    describeSessions(context);
    describeConversations(context);
    describeCheckpoints(context);
    describeDocuments(context);
    describeLeases(context);
    describeTurns(context);
  });
}
