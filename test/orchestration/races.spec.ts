import {
  createOrchestrationService,
  createOrchestrationStateManager,
  defineStepPlan,
  memoryAdapter,
  type OrchestrationState,
  type SessionsAdapter,
  type StepPlanConfig,
} from 'nestjs-agent-sessions';
import { type StateDocument } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { anyNumber } from '../support/orchestration.js';
import { StoreProcess } from '../support/store-process.js';
import { BEHAVIOUR_STORES, type TestStore } from '../support/stores.js';

const SEQUENCE = ['search', 'search', 'book', 'pay', 'thank'];
const PLANNED: StepPlanConfig = { agent: 'desk', steps: [{ name: 'ask', isDefault: true, sequence: SEQUENCE }] };

/** A concurrent writer of states: a separate process, or for memory a caller in this one. */
interface Writer {
  call<T>(method: string, ...args: unknown[]): Promise<T>;
  kill(): Promise<void>;
}

type Ports<T> = Record<string, Record<string, (...args: unknown[]) => Promise<T>>>;

class Neighbour implements Writer {
  private orchestration: object = {};

  constructor(private readonly adapter: SessionsAdapter) {}

  kill = async (): Promise<void> => {};

  async call<T>(method: string, ...args: unknown[]): Promise<T> {
    if (method === 'orchestrate') {
      const plans = (args as StepPlanConfig[]).map((config) => defineStepPlan(config));
      const storageProvider = this.adapter.state;
      const states = createOrchestrationStateManager({ storageProvider, cleanup: { enabled: false }, plans });
      this.orchestration = { states, service: createOrchestrationService(states) };
      return undefined as T;
    }
    const [port, name] = method.split('.');
    const ports = { ...this.adapter, ...this.orchestration } as unknown as Ports<T>;
    return ports[port][name](...args);
  }
}

async function start({ place }: TestStore): Promise<Writer[]> {
  if (!place) {
    const adapter = memoryAdapter();
    return [new Neighbour(adapter), new Neighbour(adapter)];
  }
  const options = place();
  const processes = await Promise.all([StoreProcess.start(options), StoreProcess.start(options)]);
  await Promise.all(processes.map((process) => process.call('init')));
  return processes;
}

describe.each(BEHAVIOUR_STORES)('two writers to one state: $name', (store) => {
  let writers: Writer[];

  beforeAll(async () => {
    writers = await start(store);
  }, 60_000);

  afterAll(async () => {
    await Promise.all(writers.map((writer) => writer.kill()));
  });

  /** @param plans of both */
  const orchestrate = (...plans: StepPlanConfig[]): Promise<unknown> =>
    Promise.all(writers.map((writer) => writer.call('orchestrate', ...plans)));

  /** Makes concurrent calls, alternating between the writers. */
  const together = <T>(times: number, method: string, args: (n: number) => unknown[]): Promise<T[]> =>
    Promise.all(Array.from({ length: times }, (_, n) => writers[n % 2].call<T>(method, ...args(n))));

  const stateOf = (sessionId: string, writer = 0): Promise<OrchestrationState | null> =>
    writers[writer].call('states.getState', sessionId);

  it('ORC-08 advances by fifty for fifty concurrent calls without a known step', async () => {
    await orchestrate();
    const sessionId = mintId();
    const { version } = await writers[0].call<OrchestrationState>('states.getOrCreateState', sessionId);
    const results = await together<OrchestrationState>(50, 'states.advanceSequence', () => [sessionId]);

    const indices = results.map(({ sequenceIndex }) => sequenceIndex).sort((a, b) => a - b);
    expect(indices).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
    expect(await stateOf(sessionId)).toMatchObject({ sequenceIndex: 50, version: version + 50 });
  });

  it('ORC-08 advances at most to the end of the step’s sequence for fifty concurrent calls', async () => {
    await orchestrate(PLANNED);
    const sessionId = mintId();
    await writers[0].call('states.getOrCreateState', sessionId);
    const results = await together<OrchestrationState>(50, 'states.advanceSequence', () => [sessionId]);

    expect(Math.max(...results.map(({ sequenceIndex }) => sequenceIndex))).toBe(SEQUENCE.length);
    for (const writer of [0, 1]) expect(await stateOf(sessionId, writer)).toMatchObject({ sequenceIndex: 5 });
  });

  it('ORC-07 fifty different tools at once are all in the history, in one order for everybody', async () => {
    await orchestrate();
    const sessionId = mintId();
    await together(50, 'states.addUsedTool', (n) => [sessionId, `tool ${n >> 1}`, { callId: `call ${n >> 1}` }]);
    await together(50, 'states.addUsedTool', (n) => [sessionId, `tool ${n}`]);

    const [one, two] = await Promise.all([stateOf(sessionId, 0), stateOf(sessionId, 1)]);
    const calls = one!.toolHistory.filter(({ callId }) => callId !== undefined);
    const others = one!.toolHistory.filter(({ callId }) => callId === undefined);
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(25);
    expect(calls).toHaveLength(25);
    expect(others.map(({ tool }) => tool).sort()).toEqual(Array.from({ length: 50 }, (_, n) => `tool ${n}`).sort());
    expect(two).toEqual({ ...one, lastAccessed: anyNumber() });
  });

  it('ORC-04 both make one state', async () => {
    await orchestrate();
    const ids = Array.from({ length: 10 }, mintId);
    const made = await together<OrchestrationState>(20, 'states.getOrCreateState', (n) => [ids[n >> 1]]);

    const versions = made.map(({ version }) => version);
    expect(versions.filter((_, n) => n % 2 === 0)).toEqual(versions.filter((_, n) => n % 2 === 1));
    const uses = await together<OrchestrationState>(20, 'states.addUsedTool', (n) => [ids[n >> 1], `tool ${n}`]);
    const grown = uses.map(({ version }, n) => version - versions[n]);
    expect(grown.sort()).toEqual([...ids.map(() => 1), ...ids.map(() => 2)]);
  });

  it('ORC-03 reads never undo a write, and always see earlier writes', async () => {
    await orchestrate();
    const sessionId = mintId();
    const { version } = await writers[0].call<OrchestrationState>('states.getOrCreateState', sessionId);
    let over = false;
    const seen: number[] = [];
    const reading = (async () => {
      while (!over) seen.push((await stateOf(sessionId, 1))!.sequenceIndex);
    })();
    for (let n = 1; n <= 30; n += 1) {
      const [{ sequenceIndex }] = await Promise.all([
        writers[0].call<OrchestrationState>('states.advanceSequence', sessionId),
        stateOf(sessionId, 1),
      ]);
      expect(sequenceIndex).toBe(n);
      expect((await stateOf(sessionId, 1))!.sequenceIndex).toBe(n);
    }
    over = true;
    await reading;

    expect(seen.length).toBeGreaterThan(0);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    expect(await stateOf(sessionId)).toMatchObject({ sequenceIndex: 30, version: version + 30 });
  });

  it('ORC-03 ORC-09 reads and changes that need a state never bring a deleted one back', async () => {
    await orchestrate(PLANNED);
    for (let round = 0; round < 15; round += 1) {
      const sessionId = mintId();
      await writers[0].call('states.addUsedTool', sessionId, 'search');
      const [removed] = await Promise.all([
        writers[round % 2].call<boolean>('states.removeSession', sessionId),
        ...[0, 1].flatMap((writer) => [
          stateOf(sessionId, writer),
          writers[writer].call('states.advanceSequence', sessionId),
          writers[writer].call('states.updateState', sessionId, { sequenceIndex: 3 }),
          writers[writer].call('states.setActiveStep', sessionId, 'ask'),
          writers[writer].call('states.toAIOrchestrationState', sessionId),
        ]),
      ]);
      expect(removed).toBe(true);
      expect(await stateOf(sessionId)).toBeNull();
    }
  });

  it('ORC-30 uses of a plan by both move one sequence, by position', async () => {
    await orchestrate(PLANNED);
    const sessionId = mintId();
    await together(10, 'service.processToolUsage', (n) => [sessionId, 'search', { callId: `call ${n}` }]);
    expect(await stateOf(sessionId)).toMatchObject({ activeStep: 'ask', sequenceIndex: 2 });
    await together(10, 'service.processToolUsage', (n) => [sessionId, n < 5 ? 'book' : 'pay']);

    const [one, two] = await Promise.all([stateOf(sessionId, 0), stateOf(sessionId, 1)]);
    expect(one!.toolHistory).toHaveLength(20);
    expect([3, 4]).toContain(one!.sequenceIndex);
    expect(two).toEqual({ ...one, lastAccessed: anyNumber() });
  });

  it('FIX-21 one of twenty parallel admissions by both passes where the plan allows one', async () => {
    const paid = {
      name: 'paid',
      conditions: [{ type: 'tool_used' as const, value: 'pay' }],
      availableTools: { denied: ['pay'] },
    };
    await orchestrate({ agent: 'desk', steps: [{ name: 'open', isDefault: true }, paid] });
    for (let round = 0; round < 10; round += 1) {
      const sessionId = mintId();
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, n) => writers[n % 2].call('service.admitTool', sessionId, 'pay')),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect((await stateOf(sessionId))!.toolHistory).toHaveLength(1);
    }
  });

  it('ORC-05 keeps hundreds of changes by both, and bounds the stored size', async () => {
    await orchestrate();
    const sessionId = mintId();
    const address = { namespace: 'orchestration-state', scope: 'default', sessionId, key: 'state' };
    const longest: number[] = [];
    const { version } = await writers[0].call<OrchestrationState>('states.getOrCreateState', sessionId);
    for (let wave = 0; wave < 20; wave += 1) {
      await together(10, 'states.addTokenUsage', () => [sessionId, { promptTokens: 1 }]);
      await together(10, 'states.addUsedTool', (n) => [sessionId, 'search', { callId: `call ${wave * 10 + n}` }]);
      const { batches } = (await writers[0].call<StateDocument | null>('state.get', address))!;
      longest.push(batches.length);
    }

    const state = (await stateOf(sessionId))!;
    expect(state).toMatchObject({
      version: version + 400,
      cumulativeTokenUsage: { promptTokens: 200, totalTokens: 200 },
    });
    expect(state.toolHistory).toHaveLength(100);
    expect(new Set(state.toolHistory.map(({ callId }) => callId)).size).toBe(100);
    expect(Math.max(...longest)).toBeGreaterThan(20);
    expect(Math.max(...longest)).toBeLessThan(60);
  });

  it('ORC-30 two versions of a plan work on one state, which both read alike', async () => {
    const [older, newer] = ['older', 'newer'].map((version): StepPlanConfig => {
      const sequence = version === 'older' ? ['search', 'book'] : ['search', 'rate', 'book'];
      const next = { name: version, conditions: [{ type: 'last_tool' as const, value: 'book' }], sequence: ['end'] };
      return { agent: 'desk', steps: [{ name: 'ask', isDefault: true, sequence, description: mintId() }, next] };
    });
    await writers[0].call('orchestrate', older);
    await writers[1].call('orchestrate', newer);
    const sessionId = mintId();
    const use = (writer: number, tool: string) =>
      writers[writer].call<OrchestrationState>('service.processToolUsage', sessionId, tool);
    const alike = async (expected: object): Promise<void> => {
      const [one, two] = await Promise.all([stateOf(sessionId, 0), stateOf(sessionId, 1)]);
      expect(one).toMatchObject(expected);
      expect(two).toEqual({ ...one, lastAccessed: anyNumber() });
    };

    const first = await use(0, 'search');
    await alike({ activeStep: 'ask', sequenceIndex: 1 });
    // The newer plan expects another tool first. The older plan continues to its own next step.
    await use(1, 'book');
    await alike({ activeStep: 'newer', sequenceIndex: 0, progress: { ask: 1 } });
    // The older plan does not know that step. Its default step is active, with its earlier progress.
    await use(0, 'book');
    await alike({ activeStep: 'older', sequenceIndex: 0, progress: { ask: 2 } });
    await together(60, 'service.processToolUsage', () => [sessionId, 'search']);
    const { version } = (await stateOf(sessionId))!;
    expect(version).toBe(first.version + 62);
    await alike({ version });

    // A reader without either plan reads the same state.
    const before = await stateOf(sessionId, 0);
    await writers[1].call('orchestrate', { agent: 'desk' });
    expect(await stateOf(sessionId, 1)).toEqual({ ...before, lastAccessed: anyNumber() });
  });
});
