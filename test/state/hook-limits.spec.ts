import 'reflect-metadata';
import { setImmediate as nextRound } from 'node:timers/promises';
import {
  type JsonValue,
  memoryAdapter,
  SessionsConfigurationError,
  SessionsModule,
  SessionStateModule,
  SessionStateService,
  SessionStore,
  type StateCompaction,
  type StateDescription,
  type StateHookCall,
  type StateModule,
  StateModuleError,
} from 'nestjs-agent-sessions';
import { type StateOperationResult } from 'nestjs-agent-sessions/http';
import { type StateClearing } from '../../lib/state/state-module.js';
import { headersOf, OPERATOR, stateApp } from '../http/state-app.js';
import { startApplication } from '../support/application.js';
import { eventually } from '../support/eventually.js';
import { LIVE_STORES, rejection } from '../support/running-application.js';
import { collect } from '../support/session-state.js';

/** A module whose hooks return when the test releases them. */
@SessionStateModule('slow')
class SlowState implements StateModule {
  readonly signals: AbortSignal[] = [];
  work: (signal: AbortSignal) => Promise<unknown> = () => new Promise(() => {});
  items: (signal: AbortSignal) => AsyncIterable<JsonValue> | Iterable<JsonValue> = () => [];

  describe(_: string, __?: unknown, call?: StateHookCall): Promise<StateDescription> {
    return this.run(call) as Promise<StateDescription>;
  }

  reset(_: string | null, call?: StateHookCall): Promise<StateClearing> {
    return this.run(call) as Promise<StateClearing>;
  }

  compact(_: string, __: unknown, call?: StateHookCall): Promise<StateCompaction> {
    return this.run(call) as Promise<StateCompaction>;
  }

  export(_: string, call?: StateHookCall): AsyncIterable<JsonValue> | Iterable<JsonValue> {
    return this.items(call!.signal);
  }

  private run(call?: StateHookCall): Promise<unknown> {
    this.signals.push(call!.signal);
    return this.work(call!.signal);
  }
}

/** Ends a hook after its limit. */
interface Late {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

const running: { close: () => Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

describe('the time limit of hooks', () => {
  it.each(['describe', 'reset', 'compact'] as const)(
    'FIX-46 fails a %s that exceeds it, and processes the other modules',
    async (operation) => {
      const { state, slow } = await start(40);
      await state.tools.set('s1', 'search', 'k', 1);

      const result = await state[operation]({ sessionId: 's1', stores: ['tools', 'slow'] });

      expect(result.stores[0]).toMatchObject({ name: 'tools', cleared: operation === 'reset' });
      expect(result.stores[0]).not.toHaveProperty('error');
      expect(result.errors).toEqual([
        {
          store: 'slow',
          code: 'STATE_MODULE_TIMEOUT',
          message:
            `The hook ${operation} of the state module slow did not finish within 40 ms. Its result was discarded. Make the ` +
            'hook faster, or increase state.hookTimeoutMs.',
        },
      ]);
      expect(slow.signals[0].reason).toBeInstanceOf(StateModuleError);
      expect(slow.signals[0].reason).toMatchObject({ module: 'slow', hook: operation, timeoutMs: 40 });
    },
  );

  it('FIX-46 drops a late result and a late rejection', async () => {
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listener);
    const { state, slow } = await start(20);
    const late: Late[] = [];
    slow.work = () => new Promise((resolve, reject) => late.push({ resolve, reject }));

    const results: StateOperationResult[] = [];
    for (let n = 0; n < 2; n += 1) results.push(await state.reset({ sessionId: 's1', stores: ['slow'] }));
    const before = structuredClone(results);
    late[0].resolve({ cleared: true });
    late[1].reject(new Error('too late'));
    for (let n = 0; n < 3; n += 1) await nextRound();
    process.off('unhandledRejection', listener);

    expect(results).toEqual(before);
    expect(results.map(({ cleared }) => cleared)).toEqual([[], []]);
    expect(unhandled).toEqual([]);
  });

  it('FIX-46 does not abort a hook that finishes in time', async () => {
    const { state, slow } = await start(60_000);
    slow.work = async () => ({ exists: true, itemCount: 2 });

    const { stores, errors } = await state.describe({ sessionId: 's1', stores: ['slow'] });

    expect({ stores, errors }).toMatchObject({ stores: [{ exists: true, itemCount: 2 }], errors: [] });
    expect(slow.signals[0].aborted).toBe(false);
  });

  it('FIX-46 limits each item of an export, not all of them together', async () => {
    const { state, slow } = await start(2000);
    slow.items = async function* () {
      for (let n = 0; n < 5; n += 1) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        yield n;
      }
    };

    expect((await collect(state.export('s1'))).map(({ item }) => item)).toEqual([0, 1, 2, 3, 4]);
  });

  it('FIX-46 fails an export whose next item does not arrive', async () => {
    const { state, slow } = await start(40);
    const signals: AbortSignal[] = [];
    slow.items = async function* (signal) {
      signals.push(signal);
      yield 1;
      await new Promise(() => {});
    };
    const items: unknown[] = [];

    const error = await rejection(
      (async () => {
        for await (const { item } of state.export('s1')) items.push(item);
      })(),
      StateModuleError,
    );

    expect(items).toEqual([1]);
    expect(error).toMatchObject({ code: 'STATE_MODULE_TIMEOUT', hook: 'export' });
    expect(signals[0].reason).toBe(error);
  });

  it('FIX-46 ends the export of a module when its reader stops', async () => {
    const { state, slow } = await start(1000);
    let ended = 0;
    slow.items = function* () {
      try {
        yield* [1, 2, 3];
      } finally {
        ended += 1;
      }
    };

    for await (const { item } of state.export('s1')) {
      expect(item).toBe(1);
      break;
    }

    expect(ended).toBe(1);
  });

  it.each([0, -1, 1.5, '30', null, Infinity])('FIX-46 rejects the limit %p at the start', async (hookTimeoutMs) => {
    const error = await rejection(start(hookTimeoutMs as number), SessionsConfigurationError);

    expect(error.message).toContain('SessionsModule: The option state.hookTimeoutMs must be an integer from 1');
  });
});

describe.each(LIVE_STORES)('a late hook of a request with an Idempotency-Key over $name', ({ open }) => {
  it('FIX-46 answers 504, and never stores the late result', async () => {
    const desk = await stateApp({
      adapter: open(),
      state: { hookTimeoutMs: 300 },
      imports: [SessionsModule.forFeature({ stateModules: [SlowState] })],
    });
    running.push(desk.app);
    const slow = desk.app.get(SessionStateService, { strict: false }).module(SlowState);
    const late: Late[] = [];
    slow.work = () => new Promise((resolve, reject) => late.push({ resolve, reject }));
    const { id: sessionId } = await desk.session();
    const ask = () =>
      desk
        .post('/state/reset', { sessionId, stores: ['slow'] })
        .set('idempotency-key', 'k')
        .set(headersOf(OPERATOR));

    const first = await ask();
    late[0].resolve({ cleared: true, metadata: { late: true } });
    slow.work = async () => ({ cleared: false, metadata: { late: false } });
    // The key can be reused once the first response has released it.
    const second = await eventually(async () => {
      const answer = await ask();
      return answer.status === 409 ? null : answer;
    });

    expect(first.status).toBe(504);
    expect(first.body).toMatchObject({ code: 'STATE_MODULE_TIMEOUT', result: { cleared: [] } });
    expect(second.status).toBe(200);
    expect(second.body).toMatchObject({ cleared: [], stores: [{ name: 'slow', metadata: { late: false } }] });
  });
});

async function start(hookTimeoutMs: number) {
  const app = await startApplication({
    imports: [
      SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false, state: { hookTimeoutMs } }),
      SessionsModule.forFeature({ stateModules: [SlowState] }),
    ],
  });
  running.push(app);
  await app.get(SessionStore, { strict: false }).create({ id: 's1', userId: 'ann' });
  const state = app.get(SessionStateService, { strict: false });
  return { state, slow: state.module(SlowState) };
}
