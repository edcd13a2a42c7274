import { describeCheckpoints } from './describe-checkpoints.js';
import { describeClients } from './describe-clients.js';
import { describeConversations } from './describe-conversations.js';
import { describeDocumentAppends } from './describe-document-appends.js';
import { describeDocumentEviction } from './describe-document-eviction.js';
import { describeDocumentLists } from './describe-document-lists.js';
import { describeDocumentOwners } from './describe-document-owners.js';
import { describeDocumentVersions } from './describe-document-versions.js';
import { describeDocuments } from './describe-documents.js';
import { describeTurnChanges } from './describe-turn-changes.js';
import { describeHostileNames } from './describe-hostile-names.js';
import { describeHostileValues } from './describe-hostile-values.js';
import { describeLeases } from './describe-leases.js';
import { describePaging } from './describe-paging.js';
import { describeRecords } from './describe-records.js';
import { describeRepeats } from './describe-repeats.js';
import { describeSessions } from './describe-sessions.js';
import { describeSizes } from './describe-sizes.js';
import { describeModels } from '../model/describe-models.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { describeStateResets } from './describe-state-resets.js';
import { describeTurnEvents } from './describe-turn-events.js';
import { describeTurns } from './describe-turns.js';
import { type ConformanceTarget, contextOf } from './target.js';

/**
 * Registers the conformance suite that every store must pass (NST-26). It uses only the test runner's globals
 * `describe`, `it`, `beforeAll`, `afterAll` and `expect`. Jest has them, and Vitest with `globals: true`.
 *
 * ```ts
 * describeSessionsAdapter('my store', async () => ({ adapter: myAdapter({ ... }) }));
 * ```
 * @param open opens an empty store; it is called once
 */
export function describeSessionsAdapter(
  name: string,
  open: () => ConformanceTarget | Promise<ConformanceTarget>,
): void {
  describe(name, () => {
    let target: ConformanceTarget & { clients: SessionsAdapter[] };
    const context = contextOf(() => target);

    beforeAll(async () => {
      const opened = await open();
      const clients = [opened.adapter];
      if (opened.connect) clients.push(await opened.connect());
      for (const client of clients) await client.init?.();
      target = { ...opened, clients };
    });

    afterAll(async () => {
      for (const client of target.clients) await client.close?.();
    });

    describeSessions(context);
    describeConversations(context);
    describeCheckpoints(context);
    describeDocuments(context);
    describeDocumentAppends(context);
    describeDocumentEviction(context);
    describeDocumentLists(context);
    describeDocumentVersions(context);
    describeDocumentOwners(context);
    describeStateResets(context);
    describeLeases(context);
    describeTurns(context);
    describeTurnEvents(context);
    describeRecords(context);
    describeHostileValues(context);
    describeHostileNames(context);
    describeSizes(context);
    describeRepeats(context);
    describePaging(context);
    describeTurnChanges(context);
    describeClients(context);
    describeModels(context);
  });
}
