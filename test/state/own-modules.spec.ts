import 'reflect-metadata';
import { Inject, Injectable, Logger, Module, Scope, type Type } from '@nestjs/common';
import {
  CompactionError,
  defineSessionManager,
  defineStepPlan,
  type FeatureOptions,
  InjectSessionManager,
  InvalidInputError,
  memoryAdapter,
  type SessionManager,
  SessionsConfigurationError,
  SessionsModule,
  SessionStateModule,
  SessionStateService,
  SessionsError,
  SessionStore,
  StateConflictError,
  type StateDescription,
  type StateModule,
  StateModuleError,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { type StateClearing } from '../../lib/state/state-module.js';
import { Echo, startApplication } from '../support/application.js';
import { rejection } from '../support/running-application.js';
import { collect } from '../support/session-state.js';
import { inProduction } from '../support/production.js';

inProduction();

interface Cart {
  items: string[];
}

const carts = defineSessionManager<Cart>({ namespace: 'carts', createDefault: () => ({ items: [] }) });

/** A module as an application writes it. */
@SessionStateModule('cart')
class CartState implements StateModule {
  constructor(@InjectSessionManager(carts) private readonly carts: SessionManager<Cart>) {}

  async add(sessionId: string, item: string): Promise<void> {
    if (!(await this.carts.get(sessionId))) await this.carts.create(sessionId);
    await this.carts.update(sessionId, ({ items }) => ({ items: [...items, item] }));
  }

  async describe(sessionId: string, page?: Parameters<StateModule['describe']>[1]): Promise<StateDescription> {
    const items = (await this.carts.get(sessionId))?.state.items ?? [];
    const begin = Number(page?.after ?? 0);
    const end = begin + (page?.limit ?? 0);
    const next = end < items.length ? { next: String(end) } : {};
    return {
      exists: items.length > 0,
      itemCount: items.length,
      ...(page ? { data: { items: items.slice(begin, end), ...next } } : {}),
    };
  }

  async reset(sessionId: string | null): Promise<StateClearing> {
    return { cleared: sessionId !== null && (await this.carts.delete(sessionId)), metadata: { by: 'cart' } };
  }

  async compact(sessionId: string, { dryRun }: { dryRun: boolean }) {
    const before = (await this.carts.get(sessionId))?.state.items ?? [];
    const items = [...new Set(before)];
    if (!dryRun && items.length < before.length) await this.carts.update(sessionId, () => ({ items }));
    return { exists: true, compacted: !dryRun && items.length < before.length, itemCount: items.length };
  }

  async *export(sessionId: string) {
    yield* (await this.carts.get(sessionId))?.state.items ?? [];
  }
}

/** Every hook fails. */
@SessionStateModule('broken')
class BrokenState implements StateModule {
  describe(): StateDescription {
    throw new Error('the password is hunter2');
  }

  reset(): Promise<StateClearing> {
    return Promise.reject(new StateConflictError('s1', 200));
  }

  compact(): never {
    throw new TypeError('hunter2');
  }
}

/** Fails with errors of which clients may see only the code. */
@SessionStateModule('faulty')
class FaultyState implements StateModule {
  describe(): StateDescription {
    throw new TypeError('the password is hunter2');
  }

  reset(): StateClearing {
    throw new StoreUnavailableError('postgres://desk:hunter2@db');
  }

  compact(sessionId: string): never {
    const cause = new Error('401 for the key hunter2');
    throw new CompactionError('COMPACTION_FAILED', 'Failed to summarize.', { sessionId, phase: 'summarize', cause });
  }
}

/** Returns fields that it was not asked for. */
@SessionStateModule('chatty')
class ChattyState implements StateModule {
  readonly resets: (string | null)[] = [];

  describe(): StateDescription {
    return { name: 'tools', cleared: true, exists: true, data: { items: ['unasked'] } } as StateDescription;
  }

  reset(sessionId: string | null): StateClearing {
    this.resets.push(sessionId);
    return { cleared: true };
  }
}

async function start(features: FeatureOptions, more: { providers?: Type[]; state?: object } = {}) {
  const { providers = [], state } = more;
  @Module({ imports: [SessionsModule.forFeature(features)], providers })
  class ShopModule {}

  const app = await startApplication({
    imports: [
      SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false, ...(state ? { state } : {}) }),
      ShopModule,
    ],
  });
  running.push(app);
  await app.get(SessionStore, { strict: false }).create({ id: 's1', userId: 'ann' });
  return { app, state: app.get(SessionStateService, { strict: false }) };
}

const running: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

const SHOP: FeatureOptions = { stateModules: [CartState], sessionManagers: [carts] };

describe('custom state modules', () => {
  it('STA-07 finds a module by its registered class, not by a subclass', async () => {
    class BetterCart extends CartState {}
    const { state } = await start(SHOP);
    expect(() => state.module(BetterCart)).toThrow(StateModuleError);
    expect(state.module(CartState)).toBeInstanceOf(CartState);
  });

  it('STA-07 includes a module in every operation, after the built-in ones', async () => {
    const { state } = await start(SHOP);
    const cart = state.module(CartState);
    expect(cart).toBeInstanceOf(CartState);
    for (const item of ['book', 'pen', 'book']) await cart.add('s1', item);
    await state.tools.set('s1', 'search', 'k', 1);

    const described = await state.describe({ sessionId: 's1' });
    expect(described.stores.map(({ name }) => name)).toEqual(['conversation', 'tools', 'task', 'flow', 'cart']);
    const report = { name: 'cart', enabled: true, exists: true, cleared: false, compacted: false, metadata: {} };
    expect(described.stores[4]).toEqual({ ...report, itemCount: 3 });
    const paged = await state.describe({ sessionId: 's1', stores: ['cart'], includeData: true, limit: 2 });
    expect(paged.stores[0].data).toEqual({ items: ['book', 'pen'], next: '2' });

    const dry = await state.compact({ sessionId: 's1', stores: ['cart'], dryRun: true });
    expect(dry).toMatchObject({ compacted: [], stores: [{ itemCount: 2 }] });
    expect((await state.compact({ sessionId: 's1' })).compacted).toEqual(['cart']);
    expect(await collect(state.export('s1'))).toEqual([
      { store: 'tools', item: expect.objectContaining({ key: 'k' }) as object },
      { store: 'cart', item: 'book' },
      { store: 'cart', item: 'pen' },
    ]);
    const would = await state.reset({ sessionId: 's1', stores: ['cart'], dryRun: true });
    expect(would).toMatchObject({ cleared: [], stores: [{ exists: true, metadata: { wouldClear: true } }] });
    expect(await state.reset({ sessionId: 's1' })).toMatchObject({ cleared: ['tools', 'cart'] });
    expect((await state.describe({ sessionId: 's1' })).stores[4]).toMatchObject({ exists: false, itemCount: 0 });
    expect((await state.reset({ sessionId: 's1', stores: ['cart'] })).cleared).toEqual([]);
  });

  it('STA-02 resets a custom or a built-in module without the others', async () => {
    const { state } = await start(SHOP);
    await state.module(CartState).add('s1', 'book');
    await state.tools.set('s1', 'search', 'k', 1);
    expect((await state.reset({ sessionId: 's1', stores: ['tools'] })).cleared).toEqual(['tools']);
    expect((await state.describe({ sessionId: 's1' })).stores.at(-1)).toMatchObject({ itemCount: 1 });
    await state.tools.set('s1', 'search', 'k', 1);
    expect((await state.reset({ sessionId: 's1', stores: ['cart'] })).cleared).toEqual(['cart']);
    expect(await state.tools.get('s1', 'search', 'k')).toMatchObject({ value: 1 });
  });

  it('STA-21 reports a failure as the error of its module, and completes the others', async () => {
    const { state } = await start({ ...SHOP, stateModules: [BrokenState, CartState] });
    await state.module(CartState).add('s1', 'book');
    await state.tools.set('s1', 'search', 'k', 1);
    const described = await state.describe({ sessionId: 's1' });
    const error = { store: 'broken', code: 'STATE_MODULE_FAILED', message: 'The module failed to describe.' };
    expect(described.errors).toEqual([error]);
    expect(described.stores.find(({ name }) => name === 'broken')).toEqual({
      name: 'broken',
      enabled: true,
      cleared: false,
      compacted: false,
      metadata: {},
      error,
    });
    expect((await state.compact({ sessionId: 's1' })).errors).toMatchObject([{ code: 'STATE_MODULE_FAILED' }]);
    const reset = await state.reset({ sessionId: 's1' });
    expect(reset.cleared).toEqual(['tools', 'cart']);
    expect(reset.errors).toMatchObject([{ store: 'broken', code: 'STATE_CONFLICT' }]);
    expect(JSON.stringify([described, reset])).not.toContain('hunter2');
  });

  it('STA-26 shows the code and message of an error of the application that has its own status', async () => {
    class CartLockedError extends SessionsError {
      readonly code = 'CART_LOCKED';
      override getStatus(): number {
        return 409;
      }
    }
    const locked = new CartLockedError('The cart is locked.');
    expect(locked.getResponse()).toEqual({ statusCode: 409, code: 'CART_LOCKED', message: 'The cart is locked.' });
    @SessionStateModule('locked')
    class LockedState extends ChattyState {
      override describe(): never {
        throw locked;
      }
    }
    const { state } = await start({ stateModules: [LockedState] });

    const { errors } = await state.describe({ sessionId: 's1', stores: ['locked'] });
    expect(errors).toEqual([{ store: 'locked', code: 'CART_LOCKED', message: 'The cart is locked.' }]);
  });

  it('STA-26 reports failures only in the log', async () => {
    const lines: string[] = [];
    const { state } = await start({ stateModules: [FaultyState] });
    Logger.overrideLogger({ log: () => {}, warn: () => {}, error: (...line: unknown[]) => lines.push(line.join(' ')) });

    const results = await Promise.all([
      state.describe({ sessionId: 's1', stores: ['faulty'] }),
      state.reset({ sessionId: 's1', stores: ['faulty'] }),
      state.compact({ sessionId: 's1', stores: ['faulty'] }),
    ]);
    Logger.overrideLogger(false);

    expect(results.flatMap(({ errors }) => errors)).toEqual([
      { store: 'faulty', code: 'STATE_MODULE_FAILED', message: 'The module failed to describe.' },
      expect.objectContaining({ store: 'faulty', code: 'STORE_UNAVAILABLE' }),
      expect.objectContaining({ store: 'faulty', code: 'COMPACTION_FAILED' }),
    ]);
    expect(JSON.stringify(results)).not.toMatch(/hunter2/);
    for (const what of ['describe', 'reset', 'compact']) {
      const line = lines.find((text) => text.includes(`faulty failed to ${what} session #`));
      expect(line).toMatch(/Error( \[\w+\])?\n +at /);
      expect(line).not.toContain('hunter2');
      expect(line).not.toContain('session s1');
    }
  });

  it('STA-21 takes only the expected fields from the report of a module', async () => {
    const { state } = await start({ stateModules: [ChattyState] }, { state: { modules: [] } });
    expect(await state.describe({ sessionId: 's1' })).toMatchObject({
      stores: [{ name: 'chatty', enabled: true, exists: true, cleared: false, compacted: false, metadata: {} }],
      cleared: [],
    });
    expect((await state.describe({ sessionId: 's1' })).stores[0]).not.toHaveProperty('data');
    await state.reset({ sessionId: 's1', dryRun: true });
    await state.reset({ all: true, dryRun: true });
    expect(state.module(ChattyState).resets).toEqual([]);
    await state.reset({ sessionId: 's1', stores: ['chatty'] });
    expect(await state.reset({ all: true })).toMatchObject({ cleared: ['chatty'] });
    expect(state.module(ChattyState).resets).toEqual(['s1', null]);
    await rejection(state.reset({}), InvalidInputError);
    expect(state.module(ChattyState).resets).toHaveLength(2);
  });

  it('STA-07 injects the providers of the importing module, and reuses a module that is a provider', async () => {
    @Injectable()
    class Prices {}
    @SessionStateModule('priced')
    class PricedState extends ChattyState {
      constructor(@Inject(Prices) readonly prices: Prices) {
        super();
      }
    }
    const made = await start({ stateModules: [PricedState] }, { providers: [Prices] });
    expect(made.state.module(PricedState).prices).toBe(made.app.get(Prices, { strict: false }));
    const provided = await start({ stateModules: [PricedState] }, { providers: [Prices, PricedState] });
    expect(provided.state.module(PricedState)).toBe(provided.app.get(PricedState, { strict: false }));
  });

  it('STA-07 ignores a module that is not registered', async () => {
    const { state } = await start({ stateModules: [] }, { providers: [ChattyState] });
    expect(() => state.module(ChattyState)).toThrow(StateModuleError);
    expect((await state.describe()).stores.map(({ name }) => name)).toEqual(['conversation', 'tools', 'task', 'flow']);
  });

  it('STA-07 accepts orchestrators, plans and session managers beside state modules in forFeature', async () => {
    const plan = defineStepPlan({ agent: 'other', steps: [{ name: 'ask', isDefault: true }] });
    const { state } = await start({ ...SHOP, orchestrators: [Echo], plans: [plan] });
    expect((await state.describe()).stores).toHaveLength(5);
  });

  it('STA-01 enables custom modules independently of built-in ones', async () => {
    const { state } = await start(SHOP, { state: { modules: ['flow'] } });
    expect((await state.describe()).stores.map(({ name }) => name)).toEqual(['flow', 'cart']);
    expect(() => state.tools).toThrow('Enabled: flow, cart.');
  });
});

describe('forFeature with an invalid module', () => {
  class NoModule {}
  @SessionStateModule('cart')
  class SecondCart extends ChattyState {}
  @SessionStateModule('tools')
  class OwnTools extends ChattyState {}
  @SessionStateModule('')
  class Nameless extends ChattyState {}
  @SessionStateModule('hookless')
  class Hookless {}
  @Injectable({ scope: Scope.REQUEST })
  @SessionStateModule('requested')
  class Requested extends ChattyState {}
  @SessionStateModule('requesting')
  class Requesting extends ChattyState {
    constructor(@Inject(Requested) readonly requested: Requested) {
      super();
    }
  }

  it.each<[string, FeatureOptions, string]>([
    [
      'rejects two modules with the same name',
      { ...SHOP, stateModules: [CartState, SecondCart] },
      'its name "cart" is already in use',
    ],
    [
      'rejects the name of a built-in module',
      { stateModules: [OwnTools] },
      'its name must not be tools, which is a built-in module',
    ],
    ['rejects an empty name', { stateModules: [Nameless] }, 'its name must be'],
    [
      'rejects a module without hooks',
      { stateModules: [Hookless as never] },
      'must have the methods describe() and reset(). Missing: describe(). Add it.',
    ],
    [
      'rejects a class that is not a state module',
      { stateModules: [NoModule as never] },
      'stateModules[0] must be a class with @SessionStateModule()',
    ],
    ['rejects an unknown key', { modules: [] } as never, 'modules is not a known key'],
    [
      'rejects a state module in the list of orchestrators',
      [CartState] as never,
      'Add it to forFeature({ stateModules: [CartState] })',
    ],
  ])('STA-07 %s', async (_, features, message) => {
    const error = await rejection((async () => start(features))(), SessionsConfigurationError);
    expect(error.message).toContain(message);
  });

  it('STA-07 registers a repeated class once, and rejects a request-scoped one', async () => {
    const twice = await start({ stateModules: [ChattyState, ChattyState] });
    expect((await twice.state.describe()).stores).toHaveLength(5);
    for (const features of [{ stateModules: [Requested] }, { stateModules: [Requesting] }]) {
      const error = await rejection(start(features, { providers: [Requested] }), SessionsConfigurationError);
      expect(error.message).toMatch(/Request(ed|ing) is request-scoped/);
    }
  });

  it('STA-07 reserves the name of a built-in module that is not enabled', async () => {
    const options = { state: { modules: [] } };
    const error = await rejection(start({ stateModules: [OwnTools] }, options), SessionsConfigurationError);
    expect(error.message).toContain('its name must not be tools');
  });
});

describe('the `state` option', () => {
  it.each<[string, readonly string[], string[]]>([
    ['in any order', ['flow', 'conversation', 'tools'], ['conversation', 'tools', 'flow']],
    ['one', ['task'], ['task']],
    ['none', [], []],
  ])('STA-01 enables modules: %s', async (_, modules, names) => {
    const { state } = await start({}, { state: { modules } });
    expect((await state.describe()).stores.map(({ name }) => name)).toEqual(names);
  });

  it.each<[string, object]>([
    ['an unknown module', { modules: ['tools', 'cart'] }],
    ['a module twice', { modules: ['tools', 'tools'] }],
    ['a string', { modules: 'tools' }],
    ['null', { modules: null }],
    ['an unknown option', { module: ['tools'] }],
    ['a redactor that is not a function', { redact: 'all' }],
    ['a limit of 0', { maxBytes: 0 }],
  ])('STA-01 rejects %s', async (_, state) => {
    const error = await rejection(start({}, { state }), SessionsConfigurationError);
    expect(error.message).toContain('SessionsModule: The option state');
  });

  it('STA-01 enables all modules by default', async () => {
    const { state } = await start({});
    expect((await state.describe()).stores.map(({ name }) => name)).toEqual(['conversation', 'tools', 'task', 'flow']);
  });
});
