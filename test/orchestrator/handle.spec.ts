import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Inject, Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory, REQUEST } from '@nestjs/core';
import {
  defineOrchestrator,
  InjectOrchestrator,
  InvalidInputError,
  memoryAdapter,
  type ConversationMessage,
  type MessageDraft,
  type MessagePart,
  OrchestratorHandle,
  reply,
  SessionBusyError,
  SessionNotFoundError,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
  type SubmitOptions,
  TurnCancelledError,
  TurnContextFactory,
  TurnStoppedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { aborted, gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

const WRONG_OPTIONS: readonly { readonly path: string; readonly options: object }[] = [
  { path: 'sessionId', options: { sessionId: undefined } },
  { path: 'sessionId', options: { sessionId: '../etc/passwd' } },
  { path: 'sessionId', options: { sessionId: 42 } },
  { path: 'options.history', options: { history: 'none' } },
  { path: 'options.context', options: { context: new Map() } },
  { path: 'options.signal', options: { signal: new EventTarget() } },
  { path: 'options.force', options: { force: 'yes' } },
  { path: 'options.idempotencyKey', options: { idempotencyKey: '' } },
  { path: 'options.whenBusy', options: { whenBusy: 'wait' } },
  { path: 'options.timeout', options: { timeout: 5 } },
  { path: 'options.sesionId', options: { sesionId: 'typo' } },
];

const WRONG_INPUTS: readonly { readonly input: unknown; readonly path: string }[] = [
  { input: undefined, path: 'input' },
  { input: 42, path: 'input' },
  { input: ' ', path: 'input.text' },
  { input: { text: 1 }, path: 'input.text' },
  { input: { text: 'hi', image: 'x' }, path: 'input.image' },
  { input: { text: 'hi', content: [{ text: 'no type' }] }, path: 'input.content' },
];

describe.each(LIVE_STORES)('the handle of an orchestrator over $name', ({ open }) => {
  it('BOT-01 waits for the result of one turn in execute', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: ({ input }) => reply(`You said ${input.text}.`, { data: { words: 1 } }) },
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    expect(await handle(desk).execute('hello', { sessionId })).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      sessionId,
      status: 'awaiting-input',
      turnIndex: 0,
      reply: 'You said hello.',
      data: { words: 1 },
    });
  });

  it('BOT-01 submit returns at once, before the turn has run', async () => {
    const { pass, open: release } = gate();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => (await pass(), reply('done')) } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const turn = await handle(desk).submit('hello', { sessionId: await session() });
    expect(turn).toMatchObject({
      orchestrator: 'desk',
      version: '1',
      status: 'queued',
      request: { input: { text: 'hello' } },
    });
    release();
    expect(await turns.result(turn.id)).toMatchObject({ id: turn.id, reply: 'done' });
  });

  it('BOT-01 knows its name, version and signature, which checkpoints carry', async () => {
    const desk = defineOrchestrator({ name: 'desk', version: '2026-11-a', intents: { answer: () => 'hi' } });
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { name, version, signature } = handle(desk);
    expect({ name, version }).toEqual({ name: 'desk', version: '2026-11-a' });
    expect(signature).toMatch(/^[0-9a-f]{64}$/);
    const sessionId = await session();
    await handle(desk).execute('hello', { sessionId });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ version, signature });
  });

  it('BOT-01 accepts a string, or a string with parts and metadata, and passes them unchanged to handler and log', async () => {
    const seen: unknown[] = [];
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: ({ input }) => void seen.push(input) } });
    const { handle, session, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const content: MessagePart[] = [
      { type: 'text', text: 'what is this?' },
      { type: 'image', url: 'cid:1' },
    ];
    const rich = { text: 'what is this?', content, metadata: { surface: 'web' } };
    await handle(desk).execute(rich, { sessionId });
    await handle(desk).execute('plain', { sessionId });
    expect(seen).toEqual([rich, { text: 'plain' }]);
    expect(await adapter.conversations.page(sessionId)).toMatchObject([
      { role: 'user', content, metadata: { surface: 'web' } },
      { role: 'user', content: 'plain' },
    ]);
  });

  it('BOT-02 uses `history` instead of the conversation log in every attempt, and does not store it', async () => {
    const seen: (readonly (ConversationMessage | MessageDraft)[])[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ history, attempt, input }) => {
          seen.push(history);
          if (input.text === 'with history' && attempt === 1) throw new Error('once more');
          return reply('noted');
        },
      },
    });
    const { handle, session, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const sessionId = await session();
    await handle(desk).execute('logged', { sessionId });
    const history = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'from elsewhere' },
    ] as const;
    await handle(desk).execute('with history', { sessionId, history });
    await handle(desk).execute('logged, too', { sessionId });
    expect(seen.slice(0, 3)).toEqual([[], history, history]);
    expect(seen[3].map(({ content }) => content)).toEqual(['logged', 'noted', 'with history', 'noted']);
    expect(await adapter.conversations.page(sessionId)).toHaveLength(6);
  });

  it('BOT-02 rejects a history whose items are not messages', async () => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    for (const history of [
      [42],
      [{ role: 'robot', content: 'x' }],
      [{ role: 'user' }],
    ] as unknown as MessageDraft[][]) {
      const error = await rejection(handle(desk).execute('hi', { sessionId, history }), InvalidInputError);
      expect(error.path).toMatch(/history\[0\]/);
    }
    expect(await turns.list({ sessionId })).toEqual([]);
  });

  it('BOT-02 accepts messages of a log as history', async () => {
    const seen: (readonly (ConversationMessage | MessageDraft)[])[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: ({ history }) => (seen.push(history), reply('noted')) },
    });
    const { handle, session, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const [from, to] = [await session(), await session()];
    await handle(desk).execute('said before', { sessionId: from });
    const history = await adapter.conversations.page(from);
    await handle(desk).execute('hi', { sessionId: to, history });
    expect(seen[1]).toEqual(history.map(({ id, role, content }) => ({ id, role, content })));
  });

  it('BOT-02 a state patch is merged before dispatch, by top-level keys, and kept when the turn settles', async () => {
    const seen: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      initialState: () => ({ order: { id: 1, note: 'a' }, count: 0 }),
      intents: { answer: ({ state }) => void seen.push(state) },
    });
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    await handle(desk).execute('hi', { sessionId, state: { order: { id: 2 } } });
    await handle(desk).execute('hi', { sessionId });
    expect(seen).toEqual(Array(2).fill({ order: { id: 2 }, count: 0 }));
    expect((await checkpoints.load('desk', sessionId))?.state).toEqual({ order: { id: 2 }, count: 0 });
  });

  it('BOT-02 attributes are stored with the turn and given to every attempt', async () => {
    const seen: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ attributes, attempt }) => {
          seen.push(attributes);
          if (attempt === 1) throw new Error('once more');
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const attributes = { channel: 'sms', tags: ['vip'] };
    const { id } = await handle(desk).execute('hi', { sessionId: await session(), attributes });
    expect(seen).toEqual([attributes, attributes]);
    expect(await turns.get(id)).toMatchObject({ attributes });
  });

  it('BOT-02 context reaches every attempt in this process as a frozen shallow copy, and is never stored', async () => {
    const seen: Readonly<Record<string, unknown>>[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ context, attempt }) => {
          seen.push(context);
          if (attempt === 1) throw new Error('once more');
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const [sessionId, database] = [await session(), new Map([['live', 'handle']])];
    const context: Record<string, unknown> = { database };
    const accepted = handle(desk).submit('hi', { sessionId, context });
    context.database = 'changed after the call';
    await turns.result((await accepted).id);
    await handle(desk).execute('without', { sessionId });

    expect(seen.slice(0, 2).map((given) => given.database)).toEqual([database, database]);
    expect(seen[0].database).toBe(database);
    expect(seen.map((given) => Object.isFrozen(given))).toEqual(seen.map(() => true));
    expect(seen.at(-1)).toEqual({});
    expect(JSON.stringify(await turns.list({ sessionId }))).not.toContain('database');
  });

  it('BOT-02 signal cancels, idempotencyKey repeats, whenBusy decides, each for its own turn', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: async ({ input, signal }) => (input.text === 'wait' ? aborted(signal) : reply('done')) },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const controller = new AbortController();
    const waits = handle(desk).execute('wait', { sessionId, signal: controller.signal, idempotencyKey: 'k1' });
    const cancelled = rejection(waits, TurnCancelledError);
    await eventually(async () => (await turns.list({ sessionId, status: 'running' })).length === 1);

    const busy = await rejection(handle(desk).execute('no', { sessionId, whenBusy: 'reject' }), SessionBusyError);
    expect(busy).toMatchObject({ code: 'SESSION_BUSY', sessionId, holderAlive: true });
    const again = await handle(desk).submit('wait', { sessionId, idempotencyKey: 'k1' });
    expect(again.id).toBe(busy.turnId);
    controller.abort();
    expect((await cancelled).turnId).toBe(again.id);
    expect(await handle(desk).execute('yes', { sessionId, whenBusy: 'reject' })).toMatchObject({ reply: 'done' });
  });

  it.each(WRONG_OPTIONS)('BOT-02 refuses $path', async ({ options, path }) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const given = { sessionId, ...options } as unknown as SubmitOptions;
    for (const call of [handle(desk).execute('hi', given), handle(desk).submit('hi', given)]) {
      expect((await rejection(call, InvalidInputError)).path).toBe(path);
    }
    expect(await turns.list({ sessionId })).toEqual([]);
  });

  it.each(WRONG_INPUTS)('BOT-02 refuses the input $input', async ({ input, path }) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const error = await rejection(handle(desk).execute(input as string, { sessionId }), InvalidInputError);
    expect(error.path).toBe(path);
    expect(await turns.list({ sessionId })).toEqual([]);
  });

  it('BOT-02 rejects an unknown session and an unregistered orchestrator', async () => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    await rejection(handle(desk).execute('hi', { sessionId: 'no-such-session' }), SessionNotFoundError);
    const unknown = turns.execute('dekst', 'hi', { sessionId: await session() });
    const error = await rejection(unknown, SessionsConfigurationError);
    expect(error).toMatchObject({ code: 'UNKNOWN_ORCHESTRATOR', orchestrator: 'dekst', known: ['desk'] });
    expect(error.message).toContain('desk');
  });
});

describe('the context of an attempt elsewhere', () => {
  it('BOT-02 every attempt gets what the TurnContextFactory builds, under what the caller gave', async () => {
    const seen: unknown[] = [];
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: ({ context }) => void seen.push(context) } });
    const { handle, session } = await startApplication({
      orchestrators: [desk],
      providers: [Handles, { provide: TurnContextFactory, useClass: HandlesFactory }],
    });
    const [sessionId, attributes] = [await session(), { tenant: 'acme' }];
    await handle(desk).execute('hi', { sessionId, attributes, context: { source: 'caller', request: 7 } });
    await handle(desk).execute('hi', { sessionId, attributes });
    const built = { database: 'database of acme', user: 'ann' };
    expect(seen).toEqual([
      { ...built, source: 'caller', request: 7 },
      { ...built, source: 'factory' },
    ]);
  });

  it.each([
    ['is request-scoped', { scope: Scope.REQUEST }],
    ['is transient', { scope: Scope.TRANSIENT }],
    ['injects the request', { inject: [REQUEST] }],
  ])('BOT-02 rejects a TurnContextFactory that %s, at the start', async (_, how) => {
    const factory = { provide: TurnContextFactory, useFactory: () => new TurnContextFactory(), ...how };
    const error = await rejection(startApplication({ providers: [factory] }), SessionsConfigurationError);
    expect(error.message).toMatch(/^TurnContextFactory is request-scoped or transient.*must be a singleton/);
  });

  it("BOT-02 uses the factory's context after a restart, and never writes the caller's context to the file", async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const { pass } = gate();
    const blocked = defineOrchestrator({ name: 'desk', intents: { answer: ({ signal }) => pass(signal) } });
    const first = await startApplication({
      adapter: sqliteAdapter(file),
      orchestrators: [blocked],
      turns: { shutdownGraceMs: 0 },
    });
    const { id } = await first.handle(blocked).submit('hi', {
      sessionId: await first.session(),
      attributes: { tenant: 'acme' },
      context: { token: 'caller-secret-4711' },
    });
    await eventually(async () => (await first.turns.get(id))?.status === 'running');
    await first.close();
    expect(readFileSync(file).includes('caller-secret-4711')).toBe(false);
    expect(readFileSync(file).includes('acme')).toBe(true);

    const seen: unknown[] = [];
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: ({ context }) => void seen.push(context) } });
    const second = await startApplication({
      adapter: sqliteAdapter(file),
      orchestrators: [desk],
      providers: [Handles, { provide: TurnContextFactory, useClass: HandlesFactory }],
    });
    await second.turns.result(id);
    expect(seen).toEqual([{ database: 'database of acme', user: 'ann', source: 'factory' }]);
  });
});

it('BOT-01 injects the handle where forFeature lists the orchestrator', async () => {
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
  @Injectable()
  class Chat {
    constructor(@InjectOrchestrator(desk) readonly handle: OrchestratorHandle) {}
  }
  const { app, session } = await startApplication({
    adapter: memoryAdapter(),
    orchestrators: [desk],
    providers: [Chat],
  });
  const { handle } = app.get(Chat);
  expect(handle).toBeInstanceOf(OrchestratorHandle);
  expect(await handle.execute('hello', { sessionId: await session() })).toMatchObject({ reply: 'hi' });
});

it.each(['first', 'last'] as const)(
  'BOT-10 a constructor may listen on its handle, with forRoot imported %s',
  async (place) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' } });
    const heard: string[] = [];
    @Injectable()
    class Audit {
      constructor(@InjectOrchestrator(desk) readonly handle: OrchestratorHandle) {
        handle.on('turn-settled', ({ status }) => heard.push(status));
      }
    }
    @Module({ imports: [SessionsModule.forFeature([desk])], providers: [Audit] })
    class AuditModule {}
    const forRoot = SessionsModule.forRoot({ sweep: false });
    @Module({ imports: place === 'first' ? [forRoot, AuditModule] : [AuditModule, forRoot] })
    class AppModule {}
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    try {
      const { id: sessionId } = await app.get(SessionStore, { strict: false }).create({ userId: 'ann' });
      await app.get(Audit, { strict: false }).handle.execute('hello', { sessionId });
      await eventually(() => heard.length > 0);
      expect(heard).toEqual(['awaiting-input']);
    } finally {
      await app.close();
    }
  },
);

it("BOT-01 tells a handler by its signal's reason why it was stopped", async () => {
  const reasons: unknown[] = [];
  const begun = gate();
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async ({ signal }) => {
        begun.open();
        await aborted(signal).catch((reason: unknown) => reasons.push(reason));
      },
    },
  });
  const { handle, session, turns } = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk] });
  const { id } = await handle(desk).submit('hello', { sessionId: await session() });
  await begun.pass();
  await turns.cancel(id);
  await eventually(() => reasons.length > 0);
  expect(reasons[0]).toBeInstanceOf(TurnStoppedError);
  expect(reasons).toMatchObject([{ why: 'cancelled' }]);
});

@Injectable()
class Handles {
  databaseOf(tenant: unknown): string {
    return `database of ${String(tenant)}`;
  }
}

@Injectable()
class HandlesFactory extends TurnContextFactory {
  constructor(@Inject(Handles) private readonly handles: Handles) {
    super();
  }

  override async create(
    ...[turn, session]: Parameters<TurnContextFactory['create']>
  ): Promise<Record<string, unknown>> {
    return { database: this.handles.databaseOf(turn.attributes.tenant), user: session.userId, source: 'factory' };
  }
}
