import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate, type Orchestration, planOf } from '../support/orchestration.js';
import { PrivateRedis } from '../support/private-redis.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { RedisMonitor } from '../support/redis-monitor.js';
import { describePostgres, describeRedis, POSTGRES } from '../support/servers.js';

const STEP = { name: 'ask', isDefault: true, sequence: ['search', 'book'] };
const NEXT = { name: 'next', conditions: [{ type: 'last_tool', value: 'other' }] } as const;
const ASKED = { name: 'asked', conditions: [{ type: 'predicate', value: 'is-late' }] } as const;

/** The store operation of each method once the plan is stored. */
const CALLS: Record<string, [(of: Orchestration, id: string) => Promise<unknown>, string]> = {
  getState: [({ states }, id) => states.getState(id), 'get'],
  toAIOrchestrationState: [({ states }, id) => states.toAIOrchestrationState(id), 'get'],
  getOrCreateState: [({ states }, id) => states.getOrCreateState(id), 'append'],
  updateState: [({ states }, id) => states.updateState(id, { sequenceIndex: 0 }), 'append'],
  setActiveStep: [({ states }, id) => states.setActiveStep(id, 'next'), 'append'],
  addUsedTool: [({ states }, id) => states.addUsedTool(id, 'search'), 'append'],
  advanceSequence: [({ states }, id) => states.advanceSequence(id), 'append'],
  addTokenUsage: [({ states }, id) => states.addTokenUsage(id, { totalTokens: 1 }), 'append'],
  resetState: [({ states }, id) => states.resetState(id), 'set'],
  hasActiveSequence: [({ sequencer }, id) => sequencer.hasActiveSequence(STEP, id), 'get'],
  getCurrentSequenceTool: [({ sequencer }, id) => sequencer.getCurrentSequenceTool(STEP, id), 'get'],
  filterToolsBySequence: [({ sequencer }, id) => sequencer.filterToolsBySequence(STEP, id, ['search']), 'get'],
  processTool: [({ sequencer }, id) => sequencer.processTool(STEP, id, 'search'), 'append'],
  getActiveStep: [({ service }, id) => service.getActiveStep(id), 'get'],
  evaluateActiveStep: [({ service }, id) => service.evaluateActiveStep(id), 'append'],
  getAvailableTools: [({ service }, id) => service.getAvailableTools(id, ['search']), 'get'],
  processToolUsage: [({ service }, id) => service.processToolUsage(id, 'search'), 'append'],
  'processToolUsage of a failed use': [
    ({ service }, id) => service.processToolUsage(id, 'search', { outcome: 'failed' }),
    'append',
  ],
  removeSession: [({ states }, id) => states.removeSession(id), 'delete'],
};

beforeEach(() => void noteWarnings());

describeStores('what orchestration asks of the store', (store) => {
  let calls: string[];
  const recorded = (): SessionsAdapter => recordingAdapter(store(), (calls = []));

  it('PRF-10 makes one call per operation once the plan is stored, which takes one call itself', async () => {
    const plan = planOf([STEP, { ...NEXT, description: mintId() }]);
    const desk = orchestrate(recorded(), { plans: [plan] });
    await desk.service.processToolUsage(mintId(), 'search');
    expect(calls).toEqual(['state.set', 'state.append']);

    for (const [name, [call, operation]] of Object.entries(CALLS)) {
      const sessionId = mintId();
      calls.length = 0;
      await call(desk, sessionId);
      expect([name, ...calls]).toEqual([name, `state.${operation}`]);
      // The operation is the same if a state exists.
      await desk.states.getOrCreateState(sessionId);
      calls.length = 0;
      await call(desk, sessionId);
      expect([name, ...calls]).toEqual([name, `state.${operation}`]);
    }
  });

  it('PRF-10 ORC-30 makes two calls per use if the plan has predicates of providers, and at most three to evaluate the active step', async () => {
    const steps = [STEP, { ...ASKED, description: mintId() }];
    const desk = orchestrate(recorded(), { plans: [planOf(steps)] }, { 'is-late': () => true });
    const sessionId = mintId();
    await desk.service.processToolUsage(mintId(), 'search');
    calls.length = 0;

    expect(await desk.service.processToolUsage(sessionId, 'search')).toMatchObject({ activeStep: 'asked' });
    expect(calls).toEqual(['state.append', 'state.append']);
    calls.length = 0;
    await desk.service.evaluateActiveStep(sessionId);
    expect(calls.length).toBeLessThanOrEqual(3);
    calls.length = 0;
    await desk.states.advanceSequence(sessionId);
    expect(calls).toEqual(['state.append']);
  });

  it('PRF-10 folds the stored document occasionally during a hundred uses, and makes no other calls', async () => {
    const desk = orchestrate(recorded(), { plans: [planOf([STEP, NEXT])] });
    const sessionId = mintId();
    await desk.service.processToolUsage(sessionId, 'search');
    calls.length = 0;
    for (let n = 0; n < 100; n += 1) await desk.service.processToolUsage(sessionId, 'search');

    expect(new Set(calls)).toEqual(new Set(['state.append']));
    expect(calls.length).toBeGreaterThan(100);
    expect(calls.length).toBeLessThanOrEqual(105);
  });

  it('ORC-31 makes no calls for an agent without steps', async () => {
    const { service } = orchestrate(recorded());
    await service.processToolUsage(mintId(), 'search');
    await service.getAvailableTools(mintId(), ['search']);
    await service.assertToolAllowed(mintId(), 'search');
    await service.evaluateActiveStep(mintId());
    expect(calls).toEqual([]);
  });
});

/** For MariaDB see `mysql-trips.spec.ts`. */
describe('what a use of a tool costs on the wire', () => {
  const plans = [planOf([STEP, NEXT])];

  async function warmUp(store: SessionsAdapter): Promise<() => Promise<unknown>> {
    const { service } = orchestrate(store, { plans });
    const sessionId = mintId();
    await service.processToolUsage(sessionId, 'search');
    return () => service.processToolUsage(sessionId, 'search');
  }

  describeRedis('redis', () => {
    it('PRF-10 is one call of a script', async () => {
      const redis = await PrivateRedis.start();
      const store = redis.store();
      await store.init?.();
      const use = await warmUp(store);
      const monitor = await RedisMonitor.start(redis);
      const { byClients } = await monitor.during(use);
      monitor.stop();
      await store.close?.();
      await redis.stop();

      expect(byClients.map(([command]) => command)).toEqual(['evalsha']);
    });
  });

  // Prevents keep-alive queries while round trips are counted.
  const patient = { migrationsRun: true, operationTimeoutMs: 600_000 };

  describePostgres('postgres', () => {
    it('PRF-10 is one statement', async () => {
      const tablePrefix = `r${randomUUID().slice(0, 8)}_`;
      const dataSource = { type: 'postgres', url: POSTGRES.url, poolSize: 3 } as const;
      const store = typeormAdapter({ dataSource, tablePrefix, ...patient });
      await store.init?.();
      const use = await warmUp(store);
      const queries = jest.spyOn(pg.Client.prototype, 'query');
      await use();
      const trips = queries.mock.calls.length;
      queries.mockRestore();
      await store.close?.();

      expect(trips).toBe(1);
    });
  });
});
