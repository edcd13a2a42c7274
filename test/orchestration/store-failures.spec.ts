import { randomUUID } from 'node:crypto';
import { SessionManager, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { succeeds } from '../support/faults.js';
import { describeServers } from '../support/servers.js';
import { anyNumber, noteWarnings, orchestrate, type Orchestration, planOf } from '../support/orchestration.js';
import { rejection } from '../support/running-application.js';
import { adapterOf, optionsOn, sqliteAdapter } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const STEP = { name: 'ask', isDefault: true, sequence: ['search', 'book'] };
const PLAN = planOf([STEP], { tokenBudget: 100 });

const CALLS: Record<string, (of: Orchestration, id: string) => Promise<unknown>> = {
  getState: ({ states }, id) => states.getState(id),
  getOrCreateState: ({ states }, id) => states.getOrCreateState(id),
  'updateState with values': ({ states }, id) => states.updateState(id, { sequenceIndex: 1 }),
  'updateState with a function': ({ states }, id) => states.updateState(id, () => ({ sequenceIndex: 1 })),
  setActiveStep: ({ states }, id) => states.setActiveStep(id, 'ask'),
  addUsedTool: ({ states }, id) => states.addUsedTool(id, 'book'),
  advanceSequence: ({ states }, id) => states.advanceSequence(id),
  addTokenUsage: ({ states }, id) => states.addTokenUsage(id, { promptTokens: 1 }),
  resetState: ({ states }, id) => states.resetState(id),
  removeSession: ({ states }, id) => states.removeSession(id),
  cleanupSession: ({ states }, id) => states.cleanupSession(id),
  toAIOrchestrationState: ({ states }, id) => states.toAIOrchestrationState(id),
  cleanupExpired: ({ states }) => states.cleanupExpired(),
  hasActiveSequence: ({ sequencer }, id) => sequencer.hasActiveSequence(STEP, id),
  getCurrentSequenceTool: ({ sequencer }, id) => sequencer.getCurrentSequenceTool(STEP, id),
  processTool: ({ sequencer }, id) => sequencer.processTool(STEP, id, 'search'),
  filterToolsBySequence: ({ sequencer }, id) => sequencer.filterToolsBySequence(STEP, id, ['search']),
  getActiveStep: ({ service }, id) => service.getActiveStep(id),
  evaluateActiveStep: ({ service }, id) => service.evaluateActiveStep(id),
  getAvailableTools: ({ service }, id) => service.getAvailableTools(id, ['search']),
  assertToolAllowed: ({ service }, id) => service.assertToolAllowed(id, 'search'),
  processToolUsage: ({ service }, id) => service.processToolUsage(id, 'search'),
  assertTokenBudget: ({ service }, id) => service.assertTokenBudget(id),
};

const MANAGED: Record<string, (sessions: SessionManager<unknown>, id: string) => Promise<unknown>> = {
  create: (sessions) => sessions.create(),
  get: (sessions, id) => sessions.get(id),
  update: (sessions, id) => sessions.update(id, (state) => state),
  delete: (sessions, id) => sessions.delete(id),
};

async function allFail(store: SessionsAdapter, sessionId: string): Promise<void> {
  const failing = orchestrate(store, { plans: [PLAN], maxSessions: 10 });
  const managed = new SessionManager(store.state, { namespace: 'managed' });
  const named = (calls: object) => Object.keys(calls).map((name) => `${name}: STORE_UNAVAILABLE`);
  const outcomes = await Promise.all([
    ...Object.entries(CALLS).map(([name, call]) => outcomeOf(name, () => call(failing, sessionId))),
    ...Object.entries(MANAGED).map(([name, call]) => outcomeOf(name, () => call(managed, sessionId))),
  ]);
  expect(outcomes).toEqual([...named(CALLS), ...named(MANAGED)]);
  expect(failing.events).toEqual([]);
}

async function outcomeOf(name: string, call: () => Promise<unknown>): Promise<string> {
  try {
    return `${name}: gave ${JSON.stringify(await call())}`;
  } catch (error) {
    return `${name}: ${error instanceof StoreUnavailableError ? error.code : String(error)}`;
  }
}

beforeAll(() => void noteWarnings());

describeServers('a store that does not answer', (server) => {
  let proxy: TcpProxy;
  let store: SessionsAdapter;

  beforeAll(async () => {
    proxy = await TcpProxy.start(server.url);
    const options = {
      ...optionsOn({ ...server, url: proxy.url }, `t${randomUUID().slice(0, 8)}_`),
      operationTimeoutMs: 1000,
    };
    store = adapterOf(options);
    await succeeds(async () => store.init?.());
  });

  afterAll(async () => {
    proxy.restore();
    await store.close?.();
    await proxy.stop();
  });

  it('ORC-14 is never reported as "not found", and the stored state is still there afterwards', async () => {
    const sessionId = mintId();
    const { states } = orchestrate(store, { plans: [PLAN] });
    const before = await succeeds(() => states.addUsedTool(sessionId, 'search'));
    proxy.cut();
    await allFail(store, sessionId);

    proxy.restore();
    const after = await succeeds(() => states.getState(sessionId));
    expect(after).toEqual({ ...before, lastAccessed: anyNumber() });
  });

  it('ORC-14 stores a plan with the next use if it could not be stored before', async () => {
    const sessionId = mintId();
    const plan = planOf([{ ...STEP, description: mintId() }]);
    const { service } = orchestrate(store, { plans: [plan] });
    proxy.cut();
    await rejection(service.processToolUsage(sessionId, 'search'), StoreUnavailableError);

    proxy.restore();
    await succeeds(() => service.processToolUsage(sessionId, 'search'));
    const stranger = orchestrate(store).states.of('desk');
    const seen = await succeeds(() => stranger.getState(sessionId));
    expect(seen).toMatchObject({ activeStep: 'ask', sequenceIndex: 1 });
  });

  it('ORC-14 does not report an unreadable plan as unknown', async () => {
    const sessionId = mintId();
    const plan = planOf([{ ...STEP, description: mintId() }]);
    const { service } = orchestrate(store, { plans: [plan] });
    await succeeds(() => service.processToolUsage(sessionId, 'search'));
    const without = failingPlans(store);
    await rejection(orchestrate(without).states.of('desk').getState(sessionId), StoreUnavailableError);
  });
});

describe('a store that was closed: sqlite', () => {
  it('ORC-14 is never reported as "not found"', async () => {
    const store = sqliteAdapter();
    await store.init?.();
    const sessionId = mintId();
    await orchestrate(store, { plans: [PLAN] }).states.addUsedTool(sessionId, 'search');
    await store.close?.();
    await allFail(store, sessionId);
  });
});

/** The same store, whose plans cannot be read. */
function failingPlans({ state }: SessionsAdapter): Pick<SessionsAdapter, 'state'> {
  const get: typeof state.get = (address, access) =>
    address.namespace.endsWith(':plans')
      ? Promise.reject(new StoreUnavailableError('Lost.', { maybeApplied: false }))
      : state.get(address, access);
  return {
    state: new Proxy(state, {
      get: (target, name) => {
        if (name === 'get') return get;
        const method: unknown = Reflect.get(target, name);
        return typeof method === 'function' ? (method.bind(target) as unknown) : method;
      },
    }),
  };
}
