import 'reflect-metadata';
import { type DynamicModule, type INestApplicationContext, Injectable, Module, type Type } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { afterEach } from '@jest/globals';
import {
  memoryAdapter,
  type SessionsAdapter,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
} from 'nestjs-agent-sessions';
import { SessionsTestingModule } from 'nestjs-agent-sessions/testing';
import { startApplication } from '../support/application.js';

@Injectable()
class Holder {
  constructor(readonly sessions: SessionStore) {}
}

/** A module of the application that imports the root itself. */
function importing(root: DynamicModule, name = 'Feature'): Type {
  class Importer {}
  Object.defineProperty(Importer, 'name', { value: name });
  Module({ imports: [root], providers: [Holder], exports: [Holder] })(Importer);
  return Importer;
}

/** An adapter that records when it is connected. */
function recorded(): { adapter: SessionsAdapter; connections: string[] } {
  const connections: string[] = [];
  const init = (): Promise<void> => Promise.resolve(void connections.push('connected'));
  return { adapter: { ...memoryAdapter(), init }, connections };
}

const started: INestApplicationContext[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((app) => app.close()));
});

async function start(imports: (DynamicModule | Type)[]): Promise<INestApplicationContext> {
  const app = await startApplication({ imports });
  started.push(app);
  return app;
}

describe('one forRoot per application', () => {
  const { adapter, connections } = recorded();
  const roots: [string, string, () => DynamicModule, () => DynamicModule][] = [
    [
      'forRoot',
      ', for Chat, Admin',
      () => SessionsModule.forRoot({ adapter }),
      () => SessionsModule.forRoot({ adapter }),
    ],
    [
      'forRoot with isGlobal',
      ', for Admin',
      () => SessionsModule.forRoot({ adapter, isGlobal: true }),
      () => SessionsModule.forRoot({ adapter }),
    ],
    [
      'two with isGlobal',
      '',
      () => SessionsModule.forRoot({ adapter, isGlobal: true }),
      () => SessionsModule.forRoot({ adapter, isGlobal: true }),
    ],
    [
      'forRootAsync',
      ', for Chat, Admin',
      () => SessionsModule.forRootAsync({ useFactory: () => ({ adapter }) }),
      () => SessionsModule.forRoot({ adapter }),
    ],
    [
      'different roles',
      ', for Chat, Admin',
      () => SessionsModule.forRoot({ adapter, role: 'submit' }),
      () => SessionsModule.forRoot({ adapter, role: 'work' }),
    ],
  ];

  it.each(roots)(
    'FIX-70 stops the start for a second one, before a store connects: %s',
    async (_, places, first, second) => {
      for (const others of [[], [ScheduleModule.forRoot()]]) {
        const app = startApplication({
          imports: [...others, importing(first(), 'Chat'), importing(second(), 'Admin')],
        });

        await expect(app).rejects.toThrow(SessionsConfigurationError);
        await expect(app).rejects.toThrow(
          `SessionsModule.forRoot() is called 2 times in one application${places}. Call it once, in the root module.`,
        );
      }
      expect(connections).toEqual([]);
    },
  );

  it('FIX-70 stops the start for a second one next to that of SessionsTestingModule', async () => {
    const app = SessionsTestingModule.create({ imports: [importing(SessionsModule.forRoot())] });

    await expect(app).rejects.toThrow(SessionsConfigurationError);
    await expect(app).rejects.toThrow('In tests, SessionsTestingModule already calls it.');
  });

  it('FIX-70 rejects a second one in a module that is loaded lazily', async () => {
    const app = await start([importing(SessionsModule.forRoot(), 'Chat')]);
    const second = importing(SessionsModule.forRoot(), 'Lazy');

    await expect(app.get(LazyModuleLoader).load(() => second)).rejects.toThrow('for Chat, Lazy.');
  });

  it('FIX-70 creates one module for a dynamic module that is imported twice', async () => {
    const shared = recorded();
    const root = SessionsModule.forRoot({ adapter: shared.adapter });
    const [chat, admin] = [importing(root, 'Chat'), importing(root, 'Admin')];

    const app = await start([chat, admin, root]);

    const stores = [chat, admin].map((module) => app.select(module).get(Holder).sessions);
    expect(stores[0]).toBe(stores[1]);
    expect(shared.connections).toEqual(['connected']);
  });

  it('FIX-70 keeps several applications of one process independent', async () => {
    const feature = importing(SessionsModule.forRoot());
    const [first, second] = [await start([feature]), await start([importing(SessionsModule.forRoot())])];
    const again = await start([feature]);

    const { id } = await first.get(Holder, { strict: false }).sessions.create({ userId: 'ann' });

    expect(await first.get(Holder, { strict: false }).sessions.get(id)).toMatchObject({ id });
    for (const other of [second, again]) {
      expect(await other.get(Holder, { strict: false }).sessions.get(id)).toBeNull();
    }
  });
});
