import 'reflect-metadata';
import { Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  defineOrchestrator,
  getOrchestratorToken,
  InvalidInputError,
  memoryAdapter,
  type OrchestratorHandle,
  SessionNotFoundError,
  SESSIONS_ADAPTER,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';
import { scriptedOrchestrator, SessionsTestingModule, TestClock } from 'nestjs-agent-sessions/testing';
import { eventually } from '../support/eventually.js';
import { gate, rejection } from '../support/running-application.js';
import { NEST_MAJOR } from '../support/nest-version.js';
import { steadyClock } from '../support/steady-clock.js';
import { sqliteAdapter } from '../support/stores.js';
import { fake, OrdersService, SupportDesk } from './support-desk.js';
import { create } from './testing-application.js';

const orders = { provide: OrdersService, useValue: fake };

describe('SessionsTestingModule', () => {
  it('NST-26 works as in the example of the documentation', async () => {
    const app = await SessionsTestingModule.create({
      orchestrators: [SupportDesk],
      providers: [{ provide: OrdersService, useValue: fake }],
    });
    const chat = await app.conversation({ userId: 'ann' });
    expect(await chat.say('where is order 7?')).toMatchObject({ reply: 'Order 7 is shipped.', turnIndex: 0 });
    await app.clock.advance('2h');
    await app.sweep();
    expect(await chat.session()).toMatchObject({ state: 'suspended' });
    await app.close();
  });

  it('NST-26 returns the state, messages and turns of a conversation', async () => {
    const app = await create({ orchestrators: [SupportDesk], providers: [orders] });
    const chat = await app.conversation({ userId: 'ann', workspaceId: 'acme', metadata: { locale: 'de' } });
    expect(await chat.messages()).toEqual([]);

    await chat.say({ text: 'where is order 7?', metadata: { channel: 'web' } });
    expect(await chat.say('and now?')).toMatchObject({ reply: 'Order 7 is shipped.', turnIndex: 1 });
    await chat.say('I want a refund', { idempotencyKey: 'third' });
    await chat.say('I want a refund', { idempotencyKey: 'third' });

    expect(await chat.session()).toMatchObject({ id: chat.sessionId, workspaceId: 'acme', metadata: { locale: 'de' } });
    expect((await chat.messages()).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'where is order 7?'],
      ['assistant', 'Order 7 is shipped.'],
      ['user', 'and now?'],
      ['assistant', 'Order 7 is shipped.'],
      ['user', 'I want a refund'],
      ['assistant', 'Which order is it about?'],
    ]);
    expect((await chat.messages())[0]?.metadata).toEqual({ channel: 'web' });
    expect((await chat.turns()).map(({ position, status }) => [position, status])).toEqual([
      [1, 'awaiting-input'],
      [2, 'awaiting-input'],
      [3, 'awaiting-input'],
    ]);
  });

  it('NST-26 returns all messages and turns of a long conversation', async () => {
    const app = await create({ orchestrators: [counting()] });
    const chat = await app.conversation({ userId: 'ann' });
    const turns = app.get(TurnService);

    for (let sent = 0; sent < 1001; sent += 50) {
      const batch = Array.from({ length: Math.min(50, 1001 - sent) }, (_, i) => `${sent + i}`);
      await Promise.all(batch.map((text) => turns.submit('counting', text, { sessionId: chat.sessionId })));
      await app.clock.advance(0);
    }

    expect((await chat.turns()).map(({ request }) => request.input.text)).toEqual(
      Array.from({ length: 1001 }, (_, i) => `${i}`),
    );
    expect(await chat.messages()).toHaveLength(2002);
  });

  it('NST-26 requires one of several orchestrators, as a class, a definition or a name', async () => {
    const other = counting();
    const app = await create({ orchestrators: [SupportDesk, other], providers: [orders] });

    const error = await rejection(app.conversation({ userId: 'ann' }), InvalidInputError);
    expect(error.message).toBe(
      'options.orchestrator is missing, and the application has several orchestrators. Pass one of: support-desk, counting.',
    );
    for (const orchestrator of [SupportDesk, other, 'counting']) {
      const chat = await app.conversation({ userId: 'ann', orchestrator });
      expect(chat.orchestrator).toBe(orchestrator === SupportDesk ? 'support-desk' : 'counting');
      expect(await chat.say('order 3')).toMatchObject({ turnIndex: 0 });
    }
    expect(
      await rejection(app.conversation({ userId: 'ann', orchestrator: 'desk' }), SessionsConfigurationError),
    ).toMatchObject({ code: 'UNKNOWN_ORCHESTRATOR', orchestrator: 'desk', known: ['support-desk', 'counting'] });
  });

  it('NST-26 reports that the application has no orchestrator', async () => {
    const app = await create();

    const error = await rejection(app.conversation({ userId: 'ann' }), InvalidInputError);

    expect(error.message).toBe(
      'options.orchestrator is missing, and the application has no orchestrator. Add one to `orchestrators`.',
    );
  });

  it('NST-26 continues a conversation in an existing session', async () => {
    const app = await create({ orchestrators: [counting()] });
    const { id: sessionId } = await app.get(SessionStore).create({ userId: 'bob' });

    await (await app.conversation({ sessionId })).say('one');
    const again = await app.conversation({ sessionId });

    expect(await again.say('two')).toMatchObject({ sessionId, turnIndex: 1 });
    expect(await again.session()).toMatchObject({ userId: 'bob' });
    await rejection(app.conversation({ sessionId: 'unknown' }), SessionNotFoundError);
  });

  it('NST-26 rejects an invalid session, like the store', async () => {
    const app = await create({ orchestrators: [counting()] });

    expect(await rejection(app.conversation({ userId: '' }), InvalidInputError)).toMatchObject({
      path: 'session.userId',
    });
    expect(await rejection(app.conversation(undefined as never), InvalidInputError)).toMatchObject({
      path: 'session.userId',
    });
    const chat = await app.conversation({ userId: 'ann' });
    expect(await rejection(chat.say(''), InvalidInputError)).toMatchObject({ path: 'input.text' });
    expect(await rejection(chat.say('hi', { sessionId: 'other', x: 1 } as object), InvalidInputError)).toMatchObject({
      path: 'options.x',
    });
  });

  it('NST-26 uses orchestrators and providers of imported modules, and overrides them', async () => {
    @Module({
      imports: [SessionsModule.forFeature([SupportDesk])],
      providers: [OrdersService, SupportDesk],
    })
    class DeskModule {}
    const lost: OrdersService = { find: async (id) => ({ id, status: 'lost' }) };

    const app = await create({
      imports: [DeskModule],
      override: (builder) => builder.overrideProvider(OrdersService).useValue(lost),
    });

    const chat = await app.conversation({ userId: 'ann' });
    expect(await chat.say('order 9')).toMatchObject({ reply: 'Order 9 is lost.' });
    expect(app.get(OrdersService)).toBe(lost);
    expect(app.get<OrchestratorHandle>(getOrchestratorToken(SupportDesk)).version).toBe('3');
  });

  it('NST-26 lets imported modules inject the services, unless isGlobal is false', async () => {
    @Injectable()
    class Desk {
      constructor(readonly sessions: SessionStore) {}
    }
    @Module({ providers: [Desk] })
    class DeskModule {}

    const app = await create({ imports: [DeskModule] });

    expect(app.get(Desk).sessions).toBe(app.get(SessionStore));
    await expect(SessionsTestingModule.create({ imports: [DeskModule], isGlobal: false })).rejects.toThrow(
      /resolve dependencies of the Desk/,
    );
  });

  it('NST-26 replaces an imported orchestrator by a definition', async () => {
    @Module({ imports: [SessionsModule.forFeature([SupportDesk])], providers: [OrdersService] })
    class DeskModule {}

    const app = await create({ imports: [DeskModule], orchestrators: [scriptedOrchestrator(SupportDesk, ['Hello.'])] });

    const chat = await app.conversation({ userId: 'ann' });
    expect(await chat.say('order 9')).toMatchObject({ reply: 'Hello.' });
  });

  it('NST-26 isolates applications from each other', async () => {
    const [one, other] = [
      await create({ orchestrators: [scriptedOrchestrator('desk', ['One.'])] }),
      await create({ orchestrators: [scriptedOrchestrator('desk', ['Other.'])] }),
    ];
    const inOne = await one.conversation({ userId: 'ann', id: 'same' });
    const inOther = await other.conversation({ userId: 'ann', id: 'same' });

    expect(await inOne.say('hi')).toMatchObject({ reply: 'One.' });
    expect(await inOther.say('hi')).toMatchObject({ reply: 'Other.' });
    const before = other.clock.now();
    await one.clock.advance('2h');
    await Promise.all([one.sweep(), other.sweep()]);

    expect(other.clock.now()).toBe(before);
    expect(await inOne.session()).toMatchObject({ state: 'suspended' });
    expect(await inOther.session()).toMatchObject({ state: 'active' });
  });

  it('NST-26 starts an application with the store and clock of a closed one', async () => {
    const clock = new TestClock();
    const adapter = memoryAdapter({ clock: clock.now });
    const first = await create({ adapter, clock, orchestrators: [counting()] });
    const before = await first.conversation({ userId: 'ann' });
    await before.say('one');
    await first.close();

    const second = await create({ adapter, clock, orchestrators: [counting()] });
    const after = await second.conversation({ sessionId: before.sessionId });

    expect(second.clock).toBe(clock);
    expect(await after.say('two')).toMatchObject({ reply: '2', turnIndex: 1 });
  });

  it('NST-26 runs on a store with its own clock, and reports that the test cannot move it', async () => {
    const app = await create({ adapter: sqliteAdapter(), orchestrators: [counting()] });
    const chat = await app.conversation({ userId: 'ann' });

    expect(await chat.say('one')).toMatchObject({ reply: '1' });
    await app.sweep();
    expect(await chat.session()).toMatchObject({ state: 'active' });
    expect(() => app.clock).toThrow(SessionsConfigurationError);
    expect(() => app.clock).toThrow('The `adapter` option was set without the `clock` option.');
  });
});

describe('SessionsTestingModule.close', () => {
  it('NST-26 stops running turns, closes everything, and can be called again', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const stopped: unknown[] = [];
    const entered = gate();
    const blocked = defineOrchestrator({
      name: 'blocked',
      intents: {
        wait: async ({ signal }: TurnContext) => {
          entered.open();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          stopped.push(signal.reason);
        },
      },
    });
    const app = await create({ orchestrators: [blocked], providers: [Resource] });
    const chat = await app.conversation({ userId: 'ann' });
    await app.get(TurnService).submit('blocked', 'hi', { sessionId: chat.sessionId });
    await entered.pass();
    expect(timers()).toBeGreaterThan(before);

    const begin = steadyClock.now();
    await Promise.all([app.close(), app.close()]);
    await app.close();
    expect(steadyClock.now() - begin).toBeLessThan(5000);

    expect(stopped).toHaveLength(1);
    expect(app.get(Resource).closed).toBe(1);
    await eventually(() => timers() <= before, { what: 'the end of every timer' });
  });

  it('NST-26 is called by `await using`', async () => {
    let resource: Resource;
    {
      await using app = await SessionsTestingModule.create({ providers: [Resource] });
      resource = app.get(Resource);
      expect(resource.closed).toBe(0);
    }
    expect(resource.closed).toBe(1);
  });

  it('NST-26 allows the clock to move afterwards', async () => {
    const app = await create({ orchestrators: [counting()] });
    const before = app.clock.now();
    await app.close();

    await app.clock.advance('1h');

    expect(app.clock.now()).toBe(before + 3_600_000);
  });
});

describe('invalid options of SessionsTestingModule.create', () => {
  it.each([
    ['a wrong option', { ttlSeconds: -1 }, 'The option ttlSeconds must be an integer from 1 to'],
    ['an unknown option', { orchestratos: [] }, 'The option orchestratos is not a known key.'],
    ['a wrong option of turns', { turns: { leaseMs: 1 } }, 'The option turns.leaseMs must be an integer'],
    ['retries that are not an object', { turns: { retry: 5 } }, 'The option turns.retry must be an object.'],
    [
      'a backoff that is null',
      { turns: { retry: { backoff: null } } },
      'The option turns.retry.backoff must be an object.',
    ],
    ['turns that are null', { turns: null }, 'The option turns must be an object.'],
    ['a sweep that is not an object', { sweep: true }, 'The option sweep must be an object.'],
    [
      'a queue of the test',
      { turns: { queue: {} } },
      'SessionsTestingModule uses its own queue. Remove the `turns.queue` option.',
    ],
    ['an invalid clock', { clock: Date.now }, 'SessionsTestingModule: The `clock` option must be a TestClock.'],
    ['an invalid adapter', { adapter: {} }, 'The option adapter must be a SessionsAdapter'],
    [
      'a class that is not an orchestrator',
      { orchestrators: [OrdersService] },
      'OrdersService is not an orchestrator.',
    ],
    [
      'imports with a forRoot',
      { imports: [SessionsModule.forRoot()] },
      'In tests, SessionsTestingModule already calls it.',
    ],
    [
      'two definitions of one name',
      { orchestrators: [scriptedOrchestrator('desk', []), scriptedOrchestrator('desk', [])] },
      'Two orchestrators are named "desk"',
    ],
  ])('NST-26 %s', async (_, options, message) => {
    const error = await rejection(SessionsTestingModule.create(options as object), SessionsConfigurationError);

    expect(error.message).toContain(message);
  });

  // Nest 11 does not close modules that have not started.
  (NEST_MAJOR > 11 ? it : it.skip)('NST-26 lets go of an application that does not start', async () => {
    const resource = new Resource();
    const broken = { provide: 'broken', useValue: { onApplicationBootstrap: () => Promise.reject(new Error('no')) } };

    await expect(
      SessionsTestingModule.create({ providers: [{ provide: Resource, useValue: resource }, broken] }),
    ).rejects.toThrow('no');

    expect(resource.closed).toBe(1);
  });
});

describe('TestClock in a module of Nest’s own Test', () => {
  it('NST-26 moves the time of the store, and due work is found soon', async () => {
    const { adapter, clock, chat } = fixture();
    @Module({
      imports: [
        SessionsModule.forRoot({
          sweep: false,
          turns: { reconcileMs: 10, retry: { backoff: { type: 'fixed', delayMs: 30_000 } } },
        }),
        SessionsModule.forFeature([chat]),
      ],
    })
    class AppModule {}
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(SESSIONS_ADAPTER)
      .useValue(adapter)
      .compile();
    await module.init();
    const sessions = module.get(SessionStore, { strict: false });
    const turns = module.get(TurnService, { strict: false });
    const { id: sessionId } = await sessions.create({ userId: 'ann' });
    const { id } = await turns.submit('chat', 'hi', { sessionId });
    await eventually(async () => (await turns.get(id))?.failures === 1);

    await clock.advance('30s');
    expect(await turns.result(id)).toMatchObject({ reply: 'up' });
    await clock.advance('61m');

    expect(await sessions.sweepStale()).toMatchObject([{ id: sessionId, state: 'suspended' }]);
    await module.close();
  });

  function fixture() {
    const clock = new TestClock();
    const chat = scriptedOrchestrator('chat', [
      ({ attempt }) => {
        if (attempt === 1) throw new Error('down');
        return 'up';
      },
    ]);
    return { clock, chat, adapter: memoryAdapter({ clock: clock.now }) };
  }
});

/** A resource that an application must close. */
@Injectable()
class Resource implements OnApplicationShutdown {
  closed = 0;

  onApplicationShutdown(): void {
    this.closed += 1;
  }
}

function counting() {
  return defineOrchestrator({
    name: 'counting',
    intents: { count: ({ turnIndex }: TurnContext) => `${turnIndex + 1}` },
  });
}
