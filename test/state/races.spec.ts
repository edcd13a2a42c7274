import {
  memoryAdapter,
  type ConversationMessage,
  type FlowCheckpoint,
  type StatePage,
  type TaskRecord,
  type ToolEntry,
} from 'nestjs-agent-sessions';
import { type StateOperationResult } from 'nestjs-agent-sessions/http';
import { mintId } from '../../lib/common/ids.js';
import { sessionState } from '../support/session-state.js';
import { StoreProcess } from '../support/store-process.js';
import { BEHAVIOUR_STORES, type TestStore } from '../support/stores.js';

/** A concurrent user of the modules: a separate process, or for memory a caller in this process. */
type Writer = Pick<StoreProcess, 'call' | 'kill'>;
type Methods = Record<string, Record<string, (...args: unknown[]) => Promise<unknown>>>;

const TIMES = 20;

function neighbour(modules: ReturnType<typeof sessionState>): Writer {
  return {
    kill: async () => {},
    call: async <T>(method: string, ...args: unknown[]) => {
      const [module, name] = method.split('.').slice(1);
      if (name === undefined) return (modules as unknown as Methods[string])[module](...args) as Promise<T>;
      return (modules as unknown as Methods)[module][name](...args) as Promise<T>;
    },
  };
}

async function start({ place }: TestStore): Promise<Writer[]> {
  if (!place) {
    const adapter = memoryAdapter();
    return [neighbour(sessionState(adapter)), neighbour(sessionState(adapter))];
  }
  const options = place();
  const processes = await Promise.all([StoreProcess.start(options), StoreProcess.start(options)]);
  for (const process of processes) {
    await process.call('init');
    await process.call('modules');
  }
  return processes;
}

describe.each(BEHAVIOUR_STORES)('two processes on the modules of one session: $name', (store) => {
  let writers: Writer[];

  beforeAll(async () => {
    writers = await start(store);
  }, 60_000);
  afterAll(() => Promise.all(writers.map((writer) => writer.kill())));

  /** Runs both writers concurrently, each this many times. */
  const both = <T>(
    times: number,
    work: (writer: Writer, n: number) => Promise<T>,
  ): Promise<PromiseSettledResult<T>[]> =>
    Promise.allSettled(Array.from({ length: 2 * times }, (_, n) => work(writers[n % 2], n)));
  const done = <T>(results: readonly PromiseSettledResult<T>[]): T[] =>
    results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const codes = (results: readonly PromiseSettledResult<unknown>[]): unknown[] =>
    results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as { code: unknown }).code] : []));

  /** Creates a session; in memory the modules work without one. */
  const someSession = async (): Promise<string> => {
    const id = mintId();
    const draft = { id, userId: 'ann', attachedSurfaces: [], metadata: {} };
    if (store.place) await writers[0].call('sessions.create', draft, { policy: 'move', maxSurfaces: 16 });
    return id;
  };

  it('STA-04 lose no increment and no patch', async () => {
    const id = await someSession();
    const results = await both(3 * TIMES, (writer, n) =>
      n % 3
        ? writer.call<ToolEntry>('modules.tools.increment', id, 'search', 'n')
        : writer.call<ToolEntry>('modules.tools.patch', id, 'search', 'o', { [`k${n}`]: n }),
    );
    expect(codes(results)).toEqual([]);
    const [first] = writers;
    expect(await first.call('modules.tools.get', id, 'search', 'n')).toMatchObject({
      value: 4 * TIMES,
    });
    const { value } = await first.call<ToolEntry>('modules.tools.get', id, 'search', 'o');
    expect(Object.keys(value as object)).toHaveLength(2 * TIMES);
  }, 60_000);

  it('STA-04 never both write over one version', async () => {
    const id = await someSession();
    let ifVersion = 0;
    for (let round = 0; round < TIMES; round += 1) {
      const results = await both(1, (writer, n) =>
        writer.call<ToolEntry | null>('modules.tools.set', id, 'search', 'k', n, { ifVersion }),
      );
      const written = done(results).filter((entry) => entry !== null);
      expect(written).toHaveLength(1);
      ifVersion = written[0].version;
    }
  }, 60_000);

  it('STA-05 never both win two transitions that exclude each other', async () => {
    const [first] = writers;
    for (let round = 0; round < TIMES; round += 1) {
      const id = await someSession();
      await first.call('modules.task.create', id, { id: 't' });
      await first.call('modules.task.transition', id, 't', 'working');
      const ends: TaskRecord['state'][] = ['completed', 'canceled'];
      const results = await both(1, (writer, n) =>
        writer.call<TaskRecord>('modules.task.transition', id, 't', ends[n]),
      );
      expect(done(results)).toHaveLength(1);
      expect(codes(results)).toEqual(['TASK_TRANSITION']);
      const [won] = done(results);
      expect(await first.call('modules.task.get', id, 't')).toEqual(won);
      const lists = ends.map((state) => first.call<StatePage<TaskRecord>>('modules.task.list', id, { state }));
      expect((await Promise.all(lists)).flatMap(({ items }) => items)).toEqual([won]);
    }
  }, 60_000);

  it('STA-05 create only one task per id', async () => {
    const id = await someSession();
    for (let n = 0; n < TIMES; n += 1) {
      const results = await both(1, (writer) => writer.call<TaskRecord>('modules.task.create', id, { id: `t${n}` }));
      expect(done(results)).toHaveLength(1);
      expect(codes(results)).toEqual(['TASK_CONFLICT']);
    }
    const { items } = await writers[0].call<StatePage<TaskRecord>>('modules.task.list', id, {
      state: 'submitted',
      limit: 100,
    });
    expect(items).toHaveLength(TIMES);
  }, 60_000);

  it('STA-06 give each saved checkpoint its own version, and lose none', async () => {
    const id = await someSession();
    const results = await both(TIMES, (writer, n) => writer.call<FlowCheckpoint>('modules.flow.save', id, 'f', { n }));
    expect(codes(results)).toEqual([]);
    const versions = await writers[1].call<FlowCheckpoint[]>('modules.flow.versions', id, 'f');
    const [{ version: first }] = versions;
    expect(versions.map(({ version }) => version - first)).toEqual(Array.from({ length: 2 * TIMES }, (_, n) => n));
    expect(versions).toEqual(done(results).toSorted((a, b) => a.version - b.version));
  }, 60_000);

  it('STA-23 reset every module atomically, and keep later writes', async () => {
    const [first, second] = writers;
    for (let round = 0; round < TIMES; round += 1) {
      const id = await someSession();
      const message = [{ role: 'user', content: 'hi' }];
      await first.call('modules.tools.set', id, 'search', 'k', 1);
      await first.call('modules.conversation.append', id, message);
      const reset = first.call<StateOperationResult>('modules.reset', { sessionId: id });
      const later = Promise.all([
        second.call<ToolEntry>('modules.tools.increment', id, 'search', 'n'),
        second.call<ConversationMessage[]>('modules.conversation.append', id, message),
      ]);
      const { cleared } = await reset;
      const [, [{ position }]] = await later;
      expect(cleared).toEqual(['conversation', 'tools']);
      expect(await first.call('modules.tools.get', id, 'search', 'k')).toBeNull();
      const log = await second.call<ConversationMessage[]>('modules.conversation.list', id);
      // The message was appended before the reset and deleted, or is the first one after it.
      expect([[], [1]]).toContainEqual(log.map((each) => each.position));
      expect([1, 2]).toContain(position);
      expect(log).toHaveLength(position === 1 ? 1 : 0);
    }
  }, 60_000);
});
