import { runInNewContext } from 'node:vm';
import { jest } from '@jest/globals';
import { createCache } from 'cache-manager';
import { Redis } from 'ioredis';
import {
  createOrchestrationService,
  createOrchestrationStateManager,
  createStepSequencer,
  memoryAdapter,
  OrchestrationStateManager,
  SessionsConfigurationError,
  type StorageProvider,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, planOf } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { rejection, startApplication } from '../support/running-application.js';

const STEP = { name: 'ask', isDefault: true, sequence: ['search', 'book'] };
const PLAN = planOf([STEP]);

let warnings: string[];

beforeEach(() => {
  warnings = noteWarnings();
});

describe('orchestration without Nest', () => {
  it('ORC-15 works without any options, and keeps no process alive', async () => {
    const states = createOrchestrationStateManager();
    const state = await states.getOrCreateState();
    await states.addUsedTool(state!.sessionId, 'search');

    expect(await states.getState(state!.sessionId)).toMatchObject({ recentlyUsedTools: ['search'], ttl: 86_400_000 });
    expect(await createOrchestrationStateManager().getState(state!.sessionId)).toBeNull();
    const sequencer = createStepSequencer();
    expect(await sequencer.processTool(STEP, 's', 'search')).toBe(true);
    expect(await sequencer.getCurrentSequenceTool(STEP, 's')).toBe('book');
    expect(await createStepSequencer().getCurrentSequenceTool(STEP, 's')).toBe('search');
    expect(warnings).toEqual([]);
    states.close();
  });

  it('ORC-15 a sequencer and a service use the given manager', async () => {
    const states = createOrchestrationStateManager({ plans: [PLAN], cleanup: { enabled: false } });
    await createStepSequencer(states).processTool(STEP, 's', 'search');
    await createOrchestrationService(states).processToolUsage('s', 'book');

    expect(await states.getState('s')).toMatchObject({ activeStep: 'ask', sequenceIndex: 2 });
    const other = states.of('another');
    expect(await createStepSequencer(other).processTool(STEP, 's', 'search')).toBe(true);
    expect(await other.getState('s')).toMatchObject({ sequenceIndex: 1 });
    const { app, session } = await startApplication();
    const injected = app.get(OrchestrationStateManager);
    const sessionId = await session();
    expect(await createStepSequencer(injected).processTool(STEP, sessionId, 'search')).toBe(true);
    expect(await injected.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    for (const make of [() => createStepSequencer({} as never), () => createOrchestrationService({} as never)]) {
      expect(make).toThrow(SessionsConfigurationError);
    }
  });

  it.each<[string, object, string]>([
    ['an unknown option', { ttl: 5 }, 'options.ttl is not a known key'],
    [
      'a provider without methods',
      { storageProvider: {} },
      'options.storageProvider must have the methods get, set, and delete or del. Missing: get(). Add it.',
    ],
    [
      'a client without a method',
      { storageProvider: { get: () => null, del: () => null } },
      'options.storageProvider must have the methods get, set, and delete or del. Missing: set(). Add it.',
    ],
    ['no provider', { storageProvider: 5 }, 'options.storageProvider must have the methods'],
    ['no namespace', { storageNamespace: '' }, 'options.storageNamespace must be a string of 1 to 256 characters'],
    ['no cleanup', { cleanup: 5 }, 'options.cleanup must be an object.'],
    [
      'an interval too short',
      { cleanup: { intervalMs: 99 } },
      'options.cleanup.intervalMs must be an integer from 100 to',
    ],
    ['enabled that is not a boolean', { cleanup: { enabled: 1 } }, 'options.cleanup.enabled must be a boolean.'],
    ['an unknown option of cleanup', { cleanup: { cron: '' } }, 'options.cleanup.cron is not a known key'],
    [
      'FIX-31 a TTL in cleanup',
      { cleanup: { ttlMs: 5 } },
      'options.cleanup.ttlMs is not a known key. Use options.ttlSeconds, in seconds.',
    ],
    [
      'FIX-31 a limit in cleanup',
      { cleanup: { maxSessions: 5 } },
      'options.cleanup.maxSessions is not a known key. Use options.maxSessions.',
    ],
    ['no sessions', { maxSessions: 0 }, 'options.maxSessions must be an integer from 1'],
    ['no recent tools', { recentTools: 0 }, 'options.recentTools must be an integer from 1 to 1000'],
    [
      'unvalidated plans',
      { plans: [{ ...PLAN }] },
      'options.plans must be a list of plans created with defineStepPlan().',
    ],
  ])('ORC-15 refuses %s', (_, options, message) => {
    expect(() => createOrchestrationStateManager(options)).toThrow(SessionsConfigurationError);
    expect(() => createOrchestrationStateManager(options)).toThrow(`createOrchestrationStateManager: ${message}`);
  });

  describe('the timer of the clean-up', () => {
    beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] }));
    afterEach(() => void jest.useRealTimers());

    it('ORC-13 ORC-15 cleans up every five minutes or as configured, until it is closed', async () => {
      const [calls, slowly] = [[], []] as [string[], string[]];
      const often = createOrchestrationStateManager({
        storageProvider: recordingAdapter(memoryAdapter(), calls).state,
        cleanup: { intervalMs: 100 },
        maxSessions: 5,
      });
      const states = createOrchestrationStateManager({
        storageProvider: recordingAdapter(memoryAdapter(), slowly).state,
      });
      await jest.advanceTimersByTimeAsync(299_999);
      expect(slowly).toEqual([]);
      await jest.advanceTimersByTimeAsync(1);
      expect(slowly).toEqual(['state.deleteExpired']);
      expect(calls.filter((call) => call === 'state.deleteExpired')).toHaveLength(3000);
      expect(calls.filter((call) => call === 'state.evictIdle')).toHaveLength(3000);

      // Timers of earlier test files may be left in this process.
      const timers = jest.getTimerCount();
      often.close();
      states.close();
      expect(jest.getTimerCount()).toBe(timers - 2);
      const before = calls.length;
      await jest.advanceTimersByTimeAsync(600_000);
      expect([calls.length, slowly.length]).toEqual([before, 1]);
    });

    it('ORC-13 starts no timer when it is disabled', () => {
      createOrchestrationStateManager({ cleanup: { enabled: false } });
      expect(jest.getTimerCount()).toBe(0);
    });

    it('ORC-13 continues after a failed run', async () => {
      let runs = 0;
      const { state } = memoryAdapter();
      const deleteExpired = (): Promise<number> => {
        runs += 1;
        return Promise.reject(new StoreUnavailableError('No.'));
      };
      const storageProvider = Object.assign(Object.create(state) as typeof state, { deleteExpired });
      const states = createOrchestrationStateManager({ storageProvider, cleanup: { intervalMs: 100 } });
      await jest.advanceTimersByTimeAsync(300);
      expect(runs).toBe(3);
      states.close();
    });
  });
});

describe('a client with del', () => {
  it.each([
    ['returns text', (text: string | undefined): unknown => text ?? null],
    ['parses JSON', (text: string | undefined): unknown => (text === undefined ? null : JSON.parse(text))],
  ])('FIX-31 is a storageProvider when it %s', async (_, got) => {
    const kept = new Map<string, string>();
    const lives: unknown[] = [];
    const storageProvider = {
      get: async (key: string) => got(kept.get(key)),
      set: async (key: string, value: string, options?: unknown) => {
        kept.set(key, value);
        lives.push(options);
      },
      del: async (key: string) => kept.delete(key),
    };
    const states = createOrchestrationStateManager({ storageProvider, ttlSeconds: 60, cleanup: { enabled: false } });
    await states.addUsedTool('s', 'search');
    await states.addUsedTool('s', 'book');

    expect(await states.getState('s')).toMatchObject({ recentlyUsedTools: ['book', 'search'] });
    expect(lives).toContainEqual({ ex: 60, EX: 60 });
    expect(await states.removeSession('s')).toBe(true);
    expect(await states.getState('s')).toBeNull();
  });
});

describe('a client whose `set` takes the time to live in another form', () => {
  const open = (storageProvider: unknown) =>
    createOrchestrationStateManager({
      storageProvider: storageProvider as StorageProvider,
      ttlSeconds: 60,
      cleanup: { enabled: false },
    });
  /** The wrapper that the error shows, over a client with this name. */
  const wrapped = (name: string, client: unknown): unknown => {
    let message = '';
    try {
      open(client);
    } catch (error) {
      expect(error).toBeInstanceOf(SessionsConfigurationError);
      ({ message } = error as Error);
    }
    const code = /Pass a wrapper: (.*)\.$/.exec(message)?.[1] ?? 'undefined';
    return runInNewContext(`(${code})`, { [name]: client });
  };

  it('ORC-15 rejects ioredis, and shows a wrapper with which keys expire', async () => {
    const sent: unknown[][] = [];
    const redis = new Redis({ lazyConnect: true });
    redis.sendCommand = (command) => {
      sent.push([command.name, ...command.args]);
      command.resolve(null);
      return command.promise;
    };
    const states = open(wrapped('redis', redis));
    await states.getOrCreateState('s');
    await states.removeSession('s');
    expect(sent.map(([name]) => name)).toEqual(['get', 'set', 'get', 'del']);
    expect(sent[1]).toEqual(['set', sent[0][1], expect.stringContaining('"batches":[]'), 'EX', '60']);
  });

  it('ORC-15 rejects the cache of Nest, and shows a wrapper with which keys expire', async () => {
    const cache = createCache();
    const states = open(wrapped('cache', cache));
    await states.addUsedTool('s', 'search');
    expect(await states.getState('s')).toMatchObject({ recentlyUsedTools: ['search'] });
    const expiry = await cache.ttl('orchestration-state:default:s:state');
    expect(expiry! - Date.now()).toBeGreaterThan(50_000);
    expect(expiry! - Date.now()).toBeLessThanOrEqual(60_000);
    expect(await states.removeSession('s')).toBe(true);
  });

  it('ORC-15 rejects Keyv, and shows a wrapper with which keys expire', async () => {
    const [keyv] = createCache().stores;
    const states = open(wrapped('keyv', keyv));
    await states.addUsedTool('s', 'search');
    expect(await states.getState('s')).toMatchObject({ recentlyUsedTools: ['search'] });
    const { expires } = (await keyv.getRaw('orchestration-state:default:s:state'))!;
    expect(expires! - Date.now()).toBeGreaterThan(50_000);
    expect(await states.removeSession('s')).toBe(true);
  });
});

describeStores('orchestration without Nest', (store) => {
  it('ORC-15 takes the state of an adapter, without a warning', async () => {
    const sessionId = mintId();
    const options = { storageProvider: store().state, plans: [PLAN], cleanup: { enabled: false } };
    await createOrchestrationService(createOrchestrationStateManager(options)).processToolUsage(sessionId, 'search');

    const again = createOrchestrationStateManager(options);
    expect(await again.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    expect(warnings).toEqual([]);
  });
});

/** A storage provider with keys, values, a namespace and seconds. */
class MapProvider implements StorageProvider {
  readonly kept = new Map<string, string>();
  readonly seconds = new Map<string, number | undefined>();

  async get(key: string, { namespace = '' }: { namespace?: string } = {}): Promise<unknown> {
    const text = this.kept.get(`${namespace}/${key}`);
    return text === undefined ? null : JSON.parse(text);
  }

  async set(
    key: string,
    value: unknown,
    { namespace = '', ttlSeconds }: { namespace?: string; ttlSeconds?: number } = {},
  ): Promise<void> {
    this.kept.set(`${namespace}/${key}`, JSON.stringify(value));
    this.seconds.set(`${namespace}/${key}`, ttlSeconds);
  }

  async delete(key: string, { namespace = '' }: { namespace?: string } = {}): Promise<boolean> {
    return this.kept.delete(`${namespace}/${key}`);
  }
}

describe('a storage provider that knows only get, set and delete', () => {
  const of = (storageProvider: StorageProvider, options: object = {}) =>
    createOrchestrationStateManager({ storageProvider, cleanup: { enabled: false }, ...options });

  it('ORC-15 does everything one after the other', async () => {
    const provider = new MapProvider();
    const states = of(provider, { plans: [PLAN] });
    const service = createOrchestrationService(states);
    expect(await states.getState('s')).toBeNull();
    expect(await states.updateState('s', { sequenceIndex: 1 })).toBeNull();
    const { version } = (await states.getOrCreateState('s'))!;
    expect(await service.processToolUsage('s', 'search', { callId: 'one' })).toMatchObject({
      version: version + 1,
      sequenceIndex: 1,
    });
    expect(await service.processToolUsage('s', 'search', { callId: 'one' })).toMatchObject({ sequenceIndex: 1 });
    expect(await states.updateState('s', ({ sequenceIndex }) => ({ sequenceIndex: sequenceIndex + 1 }))).toMatchObject({
      sequenceIndex: 2,
      version: version + 3,
    });
    expect(await of(provider, { plans: [PLAN] }).getState('s')).toMatchObject({ activeStep: 'ask', sequenceIndex: 2 });
    expect(await states.resetState('s')).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: [] });
    expect(await states.removeSession('s')).toBe(true);
    expect(await states.removeSession('s')).toBe(false);
    expect(await states.getState('s')).toBeNull();
    expect(await states.cleanupExpired()).toBe(0);
  });

  it('ORC-15 bounds the size of the stored document after many changes', async () => {
    const provider = new MapProvider();
    const states = of(provider);
    for (let n = 0; n < 100; n += 1) await states.advanceSequence((await states.getOrCreateState('s'))!.sessionId);

    expect(await states.getState('s')).toMatchObject({ sequenceIndex: 100 });
    const [document] = [...provider.kept.values()].map((text) => JSON.parse(text) as { batches: unknown[] });
    expect(document.batches.length).toBeLessThanOrEqual(40);
  });

  it('ORC-15 gives the time to live in seconds, and goes by it itself where the provider does not', async () => {
    const provider = new MapProvider();
    await of(provider, { ttlSeconds: 7 }).addUsedTool('s', 'search');
    expect([...provider.seconds.values()]).toEqual([7]);
    await of(provider, { ttlSeconds: 'never' }).getState('s');
    expect([...provider.seconds.values()]).toEqual([undefined]);

    await of(provider, { ttlSeconds: 1 }).getState('s');
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + 2000);
    expect(await of(provider).getState('s')).toBeNull();
    jest.restoreAllMocks();
  });

  it('ORC-15 ORC-02 keeps namespaces, agents and sessions apart', async () => {
    const provider = new MapProvider();
    const states = of(provider);
    const tools = async (agent: string, id: string) => (await states.of(agent).getState(id))?.recentlyUsedTools;
    await states.of('a').addUsedTool('b:c', 'one');
    await states.of('a:b').addUsedTool('c', 'two');
    await of(provider, { storageNamespace: 'other' }).of('a').addUsedTool('b:c', 'three');

    expect(await tools('a', 'b:c')).toEqual(['one']);
    expect(await tools('a:b', 'c')).toEqual(['two']);
  });

  it('ORC-15 what this process does at once is done one after the other, and reads undo nothing', async () => {
    const states = of(new MapProvider());
    const tools = Array.from({ length: 20 }, (_, index) => `tool-${index}`);
    await Promise.all(tools.flatMap((tool) => [states.addUsedTool('s', tool), states.getState('s')]));
    expect((await states.getState('s'))?.toolHistory.map(({ tool }) => tool).sort()).toEqual([...tools].sort());
  });

  it('ORC-15 ORC-02 keeps namespaces apart in a provider that does not care for them', async () => {
    const kept = new Map<string, unknown>();
    const careless: StorageProvider = {
      get: async (key) => kept.get(key),
      set: async (key, value) => kept.set(key, value),
      delete: async (key) => kept.delete(key),
    };
    await of(careless).addUsedTool('s', 'mine');
    expect(await of(careless, { storageNamespace: 'other' }).getState('s')).toBeNull();
  });

  it('ORC-15 warns once that changes are not atomic', async () => {
    const states = of(new MapProvider());
    await states.addUsedTool('s', 'search');
    await states.addUsedTool('s', 'book');
    expect(warnings).toEqual([expect.stringContaining('The storageProvider has no compare-and-set')]);
  });

  it('ORC-14 never treats an error of the provider as "not found"', async () => {
    const problem = new Error('ECONNRESET');
    const failing = { get: () => Promise.reject(problem), set: async () => {}, delete: async () => {} };
    const states = of(failing);
    for (const call of [
      () => states.getState('s'),
      () => states.getOrCreateState('s'),
      () => states.addUsedTool('s', 'search'),
      () => states.removeSession('s'),
      () => states.resetState('s'),
    ]) {
      const error = await rejection(call(), StoreUnavailableError);
      expect(error.cause).toBe(problem);
    }
  });

  it('ORC-15 returns copies of values that the provider stores by reference', async () => {
    const kept = new Map<string, unknown>();
    const states = of({
      get: async (key) => kept.get(key),
      set: async (key, value) => void kept.set(key, value),
      delete: async (key) => kept.delete(key),
    });
    const state = await states.addUsedTool('s', 'search');
    (state.recentlyUsedTools as string[]).push('forged');
    const read = (await states.getState('s'))!;
    (read.cumulativeTokenUsage as { totalTokens: number }).totalTokens = 9;

    expect(await states.getState('s')).toMatchObject({
      recentlyUsedTools: ['search'],
      cumulativeTokenUsage: { totalTokens: 0 },
    });
  });
});
