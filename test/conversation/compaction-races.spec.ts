import { type ConversationMessage, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { type StateDocument } from 'nestjs-agent-sessions/adapter';
import { CompactionError } from '../../lib/conversation/compaction.errors.js';
import { type CompactionInfo } from '../../lib/conversation/compaction-policy.js';
import { type ConversationHead } from '../../lib/conversation/conversation-head.js';
import { eventually } from '../support/eventually.js';
import { gate, LASTING_STORES, rejection } from '../support/running-application.js';
import { headOf, listing, readThroughHead, speak, startProcess, task } from './compactors.js';

/** Short enough for a test to wait until it expires. */
const LEASE_MS = 300;
/** Renewed early enough for a machine that pauses for two seconds. */
const HELD_MS = 3600;

describe.each(LASTING_STORES)('compaction by several processes over $name', ({ create }) => {
  it('BOT-41 compacts a session in only one of several processes, and summarizes no message twice', async () => {
    const connect = create();
    const processes = await Promise.all([startProcess(connect()), startProcess(connect()), startProcess(connect())]);
    const summarized: string[] = [];
    let atOnce = 0;
    let most = 0;
    const summarize = async (messages: readonly ConversationMessage[]): Promise<string> => {
      most = Math.max(most, (atOnce += 1));
      await new Promise(setImmediate);
      summarized.push(...messages.filter(({ replaces }) => !replaces).map(({ content }) => content as string));
      atOnce -= 1;
      return listing(messages);
    };
    for (let round = 1; round <= 5; round += 1) {
      await speak(processes[0].adapter, 's', round * 4 - 3, round * 4);
      const outcomes = await Promise.allSettled(
        processes.map(({ compactor }) => compactor.compact(task('s', { summarize }))),
      );
      const results = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.messages] : []));
      const refused = outcomes.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
      expect(results.filter((messages) => messages > 0)).toHaveLength(1);
      expect(refused.every((error) => error instanceof CompactionError && error.code === 'COMPACTION_BUSY')).toBe(true);
    }

    expect(most).toBe(1);
    expect(summarized).toEqual(Array.from({ length: 18 }, (_, index) => `${index + 1}`));
    expect((await headOf(processes[0].adapter, 's')).number).toBe(5);
  });

  it('BOT-41 rejects a command during a compaction, in the same and in another process', async () => {
    const connect = create();
    const [first, second] = await Promise.all([startProcess(connect()), startProcess(connect())]);
    await speak(first.adapter, 's', 1, 6);
    const { begun, free, summarize } = slow();
    const compacting = first.compactor.compact(task('s', { summarize }));
    await begun.pass();
    await rejection(first.compactor.compact(task('s')), CompactionError, 'COMPACTION_BUSY');
    await rejection(second.compactor.compact(task('s')), CompactionError, 'COMPACTION_BUSY');
    await rejection(second.compactor.restore('s'), CompactionError, 'COMPACTION_BUSY');
    free.open();
    expect(await compacting).toMatchObject({ messages: 4 });
    expect(await second.compactor.restore('s')).toEqual({ through: 0 });
  });

  it('BOT-41 holds the session until the summarizer returns', async () => {
    const connect = create();
    const first = await startProcess(connect(), { leaseMs: HELD_MS });
    const second = await startProcess(connect());
    await speak(first.adapter, 's', 1, 6);
    const { begun, free, summarize } = slow();
    const compacting = first.compactor.compact(task('s', { summarize }));
    await begun.pass();
    const until = async (): Promise<number> => Date.parse((await headOf(first.adapter, 's')).lease?.until ?? '');
    const firstEnd = await until();
    // Wait for two renewals.
    await eventually(async () => (await until()) > firstEnd + HELD_MS / 2);
    await rejection(second.compactor.compact(task('s')), CompactionError, 'COMPACTION_BUSY');
    free.open();
    expect(await compacting).toMatchObject({ messages: 4 });
  });

  it('BOT-41 stops the summarizer of a frozen process that lost the session, and ignores its result', async () => {
    const connect = create();
    const frozen = connect();
    const store = faulty(frozen);
    const first = await startProcess(frozen, { adapter: { state: store.state }, leaseMs: LEASE_MS });
    const second = await startProcess(connect());
    await speak(second.adapter, 's', 1, 6);
    const { begun, free, summarize, stopped } = slow();
    const told = rejection(first.compactor.compact(task('s', { summarize })), CompactionError, 'COMPACTION_BUSY');
    await begun.pass();
    store.freeze();
    const result = await eventually(() => second.compactor.compact(task('s')).catch(() => null));
    store.thaw();
    await told;
    free.open();

    await eventually(stopped);
    expect(result).toMatchObject({ messages: 4 });
    expect(first.events).toMatchObject([{ type: 'compaction-failed', failures: 0 }]);
    expect(await readThroughHead(second.adapter, 's')).toEqual(['1 2 3 4', '5', '6']);
    expect(await headOf(second.adapter, 's')).toMatchObject({ number: 1, lease: null, failure: null });
  });

  it('BOT-41 applies a summary after a lease renewal that is in progress', async () => {
    const adapter = create()();
    const answered = gate();
    let leased = 0;
    const { state, renewing } = watched(adapter, async (work, { lease }) => {
      const document = await work();
      // The first write takes the lease. The second one is done, but its response is delayed.
      if (lease === null || (leased += 1) !== 2) return document;
      renewing.open();
      await answered.pass();
      return document;
    });
    const { compactor } = await startProcess(adapter, { adapter: { state }, leaseMs: HELD_MS });
    await speak(adapter, 's', 1, 6);
    const { free, summarize } = slow();
    const summarized = gate();
    const telling = async (...args: Parameters<typeof summarize>): Promise<string> => {
      const summary = await summarize(...args);
      summarized.open();
      return summary;
    };
    const compacting = compactor.compact(task('s', { summarize: telling }));
    await renewing.pass();
    free.open();
    // The compactor now waits to apply the summary.
    await summarized.pass();
    await new Promise(setImmediate);
    answered.open();
    expect(await compacting).toMatchObject({ messages: 4 });
  });

  it('BOT-41 recognizes its own write after a lost response', async () => {
    const adapter = create()();
    let lost = 0;
    const { state } = watched(adapter, async (work, { summary, lease }) => {
      const document = await work();
      if (summary === null || lease === null || lost > 0) return document;
      lost += 1;
      throw new StoreUnavailableError('The answer was lost.');
    });
    const { compactor, events } = await startProcess(adapter, { adapter: { state } });
    await speak(adapter, 's', 1, 6);
    expect(await compactor.compact(task('s'))).toMatchObject({ messages: 4 });
    expect([lost, events.map(({ type }) => type)]).toEqual([1, ['compaction-applied']]);
    expect(await headOf(adapter, 's')).toMatchObject({ number: 1, failure: null, lease: null });
  });

  it('BOT-41 compacts in the next process after one dies before or after any write', async () => {
    const connect = create();
    const after = await startProcess(connect());
    // The process dies in the nth store call: before it runs, or before its response arrives.
    for (const done of [false, true]) {
      for (let dies = 1; ; dies += 1) {
        const sessionId = `dies-${dies}-${done}`;
        await speak(after.adapter, sessionId, 1, 6);
        const adapter = connect();
        const store = faulty(adapter);
        store.dieAt(dies, done);
        const first = await startProcess(adapter, { adapter: { state: store.state }, leaseMs: 100 });
        const finished = first.compactor.compact(task(sessionId)).then(
          () => true,
          () => false,
        );
        const survived = await Promise.race([finished, store.died.then(() => false)]);
        const result = await eventually(() => after.compactor.compact(task(sessionId)).catch(() => null));
        const head = await headOf(after.adapter, sessionId);
        expect(await readThroughHead(after.adapter, sessionId)).toEqual(['1 2 3 4', '5', '6']);
        expect(head).toMatchObject({ number: 1, through: 4, lease: null });
        store.bury();
        if (survived) {
          expect(result).toMatchObject({ messages: 0 });
          // Read, take, store the previous head, apply, release.
          expect(dies).toBeGreaterThan(5);
          break;
        }
      }
    }
  });

  it('BOT-41 turns continue while the session is compacted, and their messages are kept', async () => {
    const connect = create();
    const first = await startProcess(connect());
    await speak(first.adapter, 's', 1, 6);
    const { begun, free, summarize } = slow();
    const compacting = first.compactor.compact(task('s', { summarize }));
    await begun.pass();
    await speak(first.adapter, 's', 7, 9);
    free.open();
    await compacting;
    expect(await readThroughHead(first.adapter, 's')).toEqual(['1 2 3 4', '5', '6', '7', '8', '9']);
  });
});

/** A summarizer that waits until the test releases it. */
function slow() {
  const begun = gate();
  const free = gate();
  let stopped = false;
  const summarize = async (messages: readonly ConversationMessage[], { signal }: CompactionInfo): Promise<string> => {
    begun.open();
    await free.pass();
    stopped = signal.aborted;
    return listing(messages);
  };
  return { begun, free, summarize, stopped: () => stopped };
}

/** Wraps a store so that `around` is called for every written head. */
function watched(
  { state }: SessionsAdapter,
  around: (work: () => Promise<StateDocument | null>, head: ConversationHead) => Promise<StateDocument | null>,
) {
  const watching = {
    get: (...args: Parameters<typeof state.get>) => state.get(...args),
    set: (...args: Parameters<typeof state.set>) =>
      around(() => state.set(...args), args[1] as unknown as ConversationHead),
  } as SessionsAdapter['state'];
  return { state: watching, renewing: gate() };
}

/** The store of a process that freezes or dies: from then on, no call returns. */
function faulty({ state }: SessionsAdapter) {
  let thawed = Promise.resolve();
  let open = (): void => undefined;
  let calls = 0;
  let deadline = { at: Infinity, done: false };
  let tellDied!: () => void;
  const died = new Promise<void>((resolve) => {
    tellDied = resolve;
  });
  let bury!: () => void;
  const buried = new Promise<never>((_, reject) => {
    bury = () => reject(new Error('This process is dead.'));
  });
  buried.catch(() => undefined);
  const never = (): Promise<never> => {
    tellDied();
    return buried;
  };
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    await thawed;
    calls += 1;
    if (calls > deadline.at || (calls === deadline.at && !deadline.done)) return never();
    const result = await work();
    return calls === deadline.at ? never() : result;
  };
  return {
    died,
    /** Ends the pending calls of a dead process. */
    bury: (): void => bury(),
    freeze: (): void => {
      thawed = new Promise((resolve) => {
        open = resolve;
      });
    },
    thaw: (): void => open(),
    dieAt: (at: number, done: boolean): void => {
      deadline = { at, done };
    },
    state: {
      get: (...args: Parameters<typeof state.get>) => call(() => state.get(...args)),
      set: (...args: Parameters<typeof state.set>) => call(() => state.set(...args)),
      append: (...args: Parameters<typeof state.append>) => call(() => state.append(...args)),
    } as SessionsAdapter['state'],
  };
}
