import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import {
  createOrchestrationStateManager,
  memoryAdapter,
  type OrchestrationOptions,
  OrchestrationStateManager,
  type SessionsAdapter,
  SessionsConfigurationError,
} from 'nestjs-agent-sessions';
import { SessionSweeper } from '../../lib/maintenance/session-sweeper.service.js';
import { mintId } from '../../lib/common/ids.js';
import { clockGoesOn, eventually } from '../support/eventually.js';
import { anyNumber, describeStores, orchestrate } from '../support/orchestration.js';
import { LIVE_STORES, startApplication } from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';

const HUNDRED_YEARS = 3_153_600_000;
const NEW_YEAR = '0 0 1 1 *';

describeStores('how long states live', (store) => {
  const idle = (ttlSeconds: number | 'never') => orchestrate(store(), { ttlSeconds }).states;

  it('ORC-12 ORC-03 a state expires after its idle time, and not before', () =>
    whileSteady(300, async () => {
      const [used, read, left, lasting] = [mintId(), mintId(), mintId(), mintId()];
      const states = idle(1);
      const begun = performance.now();
      await Promise.all([used, read, left].map((id) => states.addUsedTool(id, 'search')));
      await idle('never').addUsedTool(lasting, 'search');
      while (performance.now() - begun < 1400) {
        await delay(200);
        expect(await states.getState(read)).toMatchObject({ sequenceIndex: 0, ttl: 1000 });
        expect(await states.advanceSequence(used)).toMatchObject({ ttl: 1000 });
      }

      expect(await states.getState(left)).toBeNull();
      expect(await states.updateState(left, { sequenceIndex: 1 })).toBeNull();
      expect(await states.setActiveStep(left, 'ask')).toBeNull();
      expect(await states.advanceSequence(left)).toBeNull();
      expect(await states.removeSession(left)).toBe(false);
      expect(await states.addUsedTool(left, 'book')).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: ['book'] });
      expect(await idle('never').getState(lasting)).toMatchObject({ recentlyUsedTools: ['search'], ttl: 'never' });
    }));

  it('ORC-12 never and a hundred years', async () => {
    const sessionId = mintId();
    expect(await idle('never').addUsedTool(sessionId, 'search')).toMatchObject({ ttl: 'never' });
    expect(await idle(HUNDRED_YEARS).getState(sessionId)).toMatchObject({ ttl: HUNDRED_YEARS * 1000 });
    expect(await idle(HUNDRED_YEARS).addUsedTool(sessionId, 'book')).toMatchObject({ ttl: HUNDRED_YEARS * 1000 });
    expect(await idle('never').getState(sessionId)).toMatchObject({
      ttl: 'never',
      recentlyUsedTools: ['book', 'search'],
    });
  });
});

const BRIEF_MS = 100;

/** A state that lives shorter than an option can say. */
async function makeBrief({ state }: SessionsAdapter, namespace: string, scope: string, id: string): Promise<void> {
  const address = { namespace, scope, sessionId: id, key: 'state' };
  await state.append(address, { id: mintId(), entries: [], initial: {}, ttlMs: BRIEF_MS });
}

const START = performance.timeOrigin;

/** The clock of a store outside this process, unaffected by changes to the clock of the process. */
const ownClock = (): number => Math.floor(START + performance.now());

describe.each(LIVE_STORES)('a process whose clock jumps: $name', ({ name, open }) => {
  const store = name === 'memory' ? memoryAdapter({ clock: ownClock }) : open();

  beforeAll(() => store.init?.());
  afterEach(() => jest.restoreAllMocks());
  afterAll(() => store.close?.());

  it.each([
    ['forward', 400],
    ['back', -400],
  ])('ORC-12 lives by the store’s clock when its own jumps %s by years', async (_, days) => {
    const [lasting, brief] = [mintId(), mintId()];
    const { states } = orchestrate(store, { ttlSeconds: 3600 });
    const before = await states.addUsedTool(lasting, 'search');
    await makeBrief(store, 'orchestration-state', 'default', brief);
    const now = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => now() + days * 86_400_000);

    const read = (await states.getState(lasting))!;
    expect(read).toEqual({ ...before, lastAccessed: anyNumber() });
    expect(read.lastAccessed - before.lastAccessed).toBeLessThan(60_000);
    const used = await states.addUsedTool(lasting, 'book');
    expect(Math.abs(used.lastAccessed - before.lastAccessed)).toBeLessThan(60_000);
    expect(Math.abs(Date.parse(used.toolHistory[1].at) - before.lastAccessed)).toBeLessThan(60_000);
    await delay(2 * BRIEF_MS);
    expect(await states.getState(brief)).toBeNull();
    await states.cleanupExpired();
    expect(await states.getState(lasting)).toMatchObject({ recentlyUsedTools: ['book', 'search'] });
  });
});

describe('how long states are to live', () => {
  const { SESSION_TTL_SECONDS: before } = process.env;

  afterEach(() => {
    if (before === undefined) delete process.env.SESSION_TTL_SECONDS;
    else process.env.SESSION_TTL_SECONDS = before;
  });

  async function ttl(ttlSeconds?: OrchestrationOptions['ttlSeconds']): Promise<{ factory: unknown; nest: unknown }> {
    const states = createOrchestrationStateManager({
      cleanup: { enabled: false },
      ...(ttlSeconds !== undefined && { ttlSeconds }),
    });
    const { app, session } = await startApplication({ orchestration: ttlSeconds === undefined ? {} : { ttlSeconds } });
    const sessionId = await session();
    const ttlOf = async (of: OrchestrationStateManager) => (await of.getOrCreateState(sessionId))?.ttl;
    return { factory: await ttlOf(states), nest: await ttlOf(app.get(OrchestrationStateManager)) };
  }

  it.each<[string, string | undefined, OrchestrationOptions['ttlSeconds'], number | 'never']>([
    ['a day by default', undefined, undefined, 86_400_000],
    ['as the environment says', '7200', undefined, 7_200_000],
    ['as the option says, whatever the environment does', '7200', 60, 60_000],
    ['as the option says in digits', '7200', '60', 60_000],
    ['never to end, as the option says', '7200', 'never', 'never'],
  ])('ORC-12 %s', async (_, environment, option, expected) => {
    delete process.env.SESSION_TTL_SECONDS;
    if (environment !== undefined) process.env.SESSION_TTL_SECONDS = environment;

    expect(await ttl(option)).toEqual({ factory: expected, nest: expected });
  });

  it.each(['0', '-1', '1.5', '', ' 60', '1e3', 'never', 'soon', '3153600001'])(
    'ORC-12 the start fails with SESSION_TTL_SECONDS=%j',
    async (environment) => {
      process.env.SESSION_TTL_SECONDS = environment;
      const wrong = /SESSION_TTL_SECONDS must be an integer from 1 to 3153600000/;
      expect(() => createOrchestrationStateManager()).toThrow(SessionsConfigurationError);
      expect(() => createOrchestrationStateManager()).toThrow(wrong);
      await expect(startApplication({})).rejects.toThrow(wrong);
    },
  );

  it.each([0, -1, 1.5, NaN, Infinity, '', '0', '-1', 'ever', ' 60', true, {}, HUNDRED_YEARS + 1])(
    'ORC-12 the start fails with ttlSeconds: %j',
    async (ttlSeconds) => {
      const options = { ttlSeconds: ttlSeconds as number };
      expect(() => createOrchestrationStateManager(options)).toThrow(SessionsConfigurationError);
      expect(() => createOrchestrationStateManager(options)).toThrow(/ttlSeconds must be "never" or an integer/);
      await expect(startApplication({ orchestration: options })).rejects.toThrow(
        /orchestration\.ttlSeconds must be "never"/,
      );
    },
  );
});

describe.each(LIVE_STORES)('removal of states: $name', ({ open }) => {
  const store = open();
  const namespaces = { a: mintId(), b: mintId() };

  beforeAll(() => store.init?.());
  afterAll(() => store.close?.());

  it('ORC-13 cleanupExpired removes the expired states of all agents, and returns their number', async () => {
    const lasting = orchestrate(store, { ttlSeconds: 'never' }).states;
    const kept = (await lasting.getOrCreateState())!;
    for (const agent of ['desk', 'desk', 'mail']) await makeBrief(store, 'orchestration-state', agent, mintId());

    let removed = 0;
    await eventually(async () => (removed += await lasting.cleanupExpired()) >= 3);
    expect(removed).toBe(3);
    expect(await lasting.cleanupExpired()).toBe(0);
    expect(await lasting.getState(kept.sessionId)).toMatchObject({ sequenceIndex: 0 });
  });

  it('ORC-13 maxSessions evicts the states of the namespace that were idle the longest', async () => {
    const { states } = orchestrate(store, { storageNamespace: namespaces.a, maxSessions: 3 });
    const other = orchestrate(store, { storageNamespace: namespaces.b }).states;
    const foreign = await other.getOrCreateState();
    const ids = ['1', '2', '3', '4', '5'];
    for (const id of ids) {
      await states.of(id === '4' ? 'mail' : 'desk').getOrCreateState(id);
      await clockGoesOn();
    }
    await states.of('desk').getState('1');
    await clockGoesOn();
    await states.of('desk').addUsedTool('2', 'search');

    expect(await states.cleanupExpired()).toBe(2);
    const left = await Promise.all(ids.map((id) => states.of(id === '4' ? 'mail' : 'desk').getState(id)));
    expect(left.map((state) => state !== null)).toEqual([true, true, false, false, true]);
    expect(await states.cleanupExpired()).toBe(0);
    expect(await other.getState(foreign!.sessionId)).not.toBeNull();
  });

  it.each([
    ['removes them', undefined, [false, false, true, true]],
    ['removes only expired states when cleanup is off', false, [false, true, true, true]],
  ] as const)('ORC-13 the sweep %s', async (_, cleanup, left) => {
    const namespace = mintId();
    const orchestration = { namespace, maxSessions: 2, ...(cleanup === undefined ? {} : { cleanup }) };
    const { app, session } = await startApplication({ adapter: store, orchestration, sweep: { cron: NEW_YEAR } });
    const states = app.get(OrchestrationStateManager);
    const ids = [await session(), await session(), await session(), await session()];
    await makeBrief(store, namespace, 'default', ids[0]);
    for (const id of ids.slice(1)) {
      await clockGoesOn();
      await states.getOrCreateState(id);
    }
    await delay(2 * BRIEF_MS);
    const sweeper = app.get(SessionSweeper, { strict: false });
    await sweeper.run();

    expect(sweeper.counts.documents).toBe(left.filter((stays) => !stays).length);
    const after = await Promise.all(ids.map((id) => states.getState(id)));
    expect(after.map((state) => state !== null)).toEqual(left);
  });
});
