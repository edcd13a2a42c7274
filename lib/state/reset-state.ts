import { mintId } from '../common/ids.js';
import { inGroups } from '../common/batches.js';
import { type JsonValue } from '../common/json.js';
import { FIRST_HEAD, HEAD, readHead } from '../conversation/conversation-head.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { namespaceOf } from '../ledger/namespaces.js';
import { type StateModuleName } from './state-module.js';
import { type StateCleared } from '../ledger/state.store.js';
import { CONTESTED, untilUncontested } from './until-uncontested.js';

const SESSIONS = 100;
const DOCUMENTS = 1000;
const AT_ONCE = 8;
/** Stops after this many rounds, even if turns keep starting and writing in other sessions. */
const MAX_ROUNDS = 10;

type Stores = Pick<SessionsAdapter, 'state' | 'conversations' | 'turns'>;

/**
 * Clears built-in modules of one session in one commit, with one epoch, so that a turn that started before writes to
 * none of them afterwards (STA-23).
 */
export function resetSession(
  { state }: Pick<Stores, 'state'>,
  sessionId: string,
  modules: readonly StateModuleName[],
): Promise<StateCleared> {
  const namespaces = modules.map(namespaceOf);
  return untilUncontested(sessionId, async () => {
    const epoch = mintId();
    const log = modules.includes('conversation') ? { log: await emptyLog({ state }, sessionId, epoch) } : {};
    return (await state.reset({ sessionId, namespaces, epoch, ...log })) ?? CONTESTED;
  });
}

/** The data that was cleared in all sessions, even if the operation failed partway. */
export interface StateClearance {
  readonly cleared: StateCleared;
  /** The error that stopped the operation. */
  readonly failure?: unknown;
}

/**
 * Clears built-in modules in every session. Data that exists at the start is deleted, and no turn that has read it
 * writes it back. Data that is written meanwhile may remain.
 */
export async function resetAllSessions(stores: Stores, modules: readonly StateModuleName[]): Promise<StateClearance> {
  const reset = new ResetOfAll(stores, modules);
  try {
    await reset.run();
    return { cleared: reset.cleared };
  } catch (failure) {
    return { cleared: reset.cleared, failure };
  }
}

class ResetOfAll {
  private readonly documents: Map<string, number>;
  private messages = 0;
  /** Sessions with an epoch, so that their running turns are fenced. */
  private readonly fenced = new Set<string>();

  constructor(
    private readonly stores: Stores,
    private readonly modules: readonly StateModuleName[],
  ) {
    this.documents = new Map(modules.map((module) => [namespaceOf(module), 0]));
  }

  get cleared(): StateCleared {
    return { documents: Object.fromEntries(this.documents), messages: this.messages };
  }

  async run(): Promise<void> {
    // Repeats, because a turn that started during a round may have read a document before its deletion, and documents
    // held by another operation were skipped.
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      const found = (await this.fenceOpenLanes()) + (await this.evict());
      if (round > 1 && found === 0) break;
    }
    if (!this.modules.includes('conversation')) return;
    await eachPage(
      ({ after = '' }) => this.stores.conversations.sessions(after, SESSIONS),
      (sessions) => this.resetEach(sessions, ['conversation']),
    );
  }

  /** @returns the number of newly fenced sessions */
  private async fenceOpenLanes(): Promise<number> {
    const before = this.fenced.size;
    await eachPage(
      async (after) =>
        (await this.stores.turns.lanes({ ...after, limit: SESSIONS })).lanes.map((lane) => lane.sessionId),
      async (sessions) => {
        const opened = sessions.filter((sessionId) => !this.fenced.has(sessionId));
        await this.resetEach(opened, this.modules);
        for (const sessionId of opened) this.fenced.add(sessionId);
      },
    );
    return this.fenced.size - before;
  }

  /**
   * Deletes the documents, except those of conversations, which belong to their messages.
   * @returns the number of deleted documents
   */
  private async evict(): Promise<number> {
    let total = 0;
    for (const module of this.modules) {
      if (module === 'conversation') continue;
      const namespace = namespaceOf(module);
      // A smaller number ends the loop, because turns may create documents faster than they are deleted.
      for (let evicted = DOCUMENTS; evicted === DOCUMENTS;) {
        evicted = await this.stores.state.evictIdle(namespace, 0, DOCUMENTS);
        this.count(namespace, evicted);
        total += evicted;
      }
    }
    return total;
  }

  private async resetEach(sessions: readonly string[], modules: readonly StateModuleName[]): Promise<void> {
    await inGroups(sessions, AT_ONCE, async (sessionId) => {
      const { documents, messages } = await resetSession(this.stores, sessionId, modules);
      for (const [namespace, count] of Object.entries(documents)) this.count(namespace, count);
      this.messages += messages;
    });
  }

  private count(namespace: string, documents: number): void {
    this.documents.set(namespace, (this.documents.get(namespace) ?? 0) + documents);
  }
}

/**
 * Returns the part of a reset that clears the log. The new head starts again, but keeps the token usage. A compaction in
 * progress loses the head.
 */
async function emptyLog(
  { state }: Pick<Stores, 'state'>,
  sessionId: string,
  epoch: string,
): Promise<{ head: typeof HEAD; value: JsonValue; ifVersion: number }> {
  const document = await state.get({ ...HEAD, sessionId });
  const { id, number, spent, turns } = document ? readHead(document) : FIRST_HEAD;
  // Keep the id, so that the usage reported by turns stays known, and use an unused number.
  const value = { ...FIRST_HEAD, id: id || mintId(), number: number + 1, log: epoch, spent, turns };
  return { head: HEAD, value: value as unknown as JsonValue, ifVersion: document?.version ?? 0 };
}

async function eachPage(
  page: (of: { after?: string }) => Promise<readonly string[]>,
  visit: (sessions: readonly string[]) => Promise<void>,
): Promise<void> {
  for (let after: string | undefined; ;) {
    const sessions = await page(after === undefined ? {} : { after });
    await visit(sessions);
    if (sessions.length < SESSIONS) return;
    after = sessions.at(-1);
  }
}
