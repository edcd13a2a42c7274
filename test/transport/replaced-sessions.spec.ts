import 'reflect-metadata';
import { type Server } from 'node:http';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Injectable,
  Post,
  Sse,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AllowAnonymousSession,
  CurrentSession,
  defineOrchestrator,
  defineStepPlan,
  InMemorySessionStoreAdapter,
  memoryAdapter,
  OrchestrationStateManager,
  reply,
  RequireTool,
  type Session,
  SessionGuard,
  type SessionsAdapter,
  SessionsModule,
  SessionStateService,
  SessionStore,
  type SessionStoreAdapter,
  ToolGuard,
  TurnService,
  UseSession,
} from 'nestjs-agent-sessions';
import { concatMap, from, map, type Observable } from 'rxjs';
import request from 'supertest';
import { type Gate, gate, SAMPLED_STORES } from '../support/running-application.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => reply('Hello.') } });
const PLAN = defineStepPlan({
  agent: 'agent',
  steps: [{ name: 'only', isDefault: true, availableTools: { allowed: ['search'] } }],
});

/** The work of a handler, with the id of its session. */
let work: (id: string) => Promise<unknown>;
/** Open when the handler has begun. */
let entered: Gate;
/** The handler waits for it before its work. */
let replaced: Gate;
/** Runs between the guards and the handler. */
let afterGuards: () => Promise<unknown>;

@Injectable()
class LastGuard implements CanActivate {
  async canActivate(): Promise<boolean> {
    await afterGuards();
    return true;
  }
}

async function late(id: string): Promise<object> {
  entered.open();
  await replaced.pass();
  await work(id);
  return { done: true };
}

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@AllowAnonymousSession()
class Handlers {
  @Post('promise')
  @UseSession()
  promise(@CurrentSession() { id }: Session): Promise<object> {
    return late(id);
  }

  @Post('observable')
  @UseSession()
  observable(@CurrentSession() { id }: Session): Observable<object> {
    return from([0]).pipe(concatMap(() => late(id)));
  }

  @Post('tool')
  @UseSession()
  @RequireTool('search')
  tool(@CurrentSession() { id }: Session): Promise<object> {
    return late(id);
  }

  @Sse('events')
  @UseSession()
  events(@CurrentSession() { id }: Session): Observable<object> {
    return from([0]).pipe(
      concatMap(() => late(id)),
      map((data) => ({ data })),
    );
  }
}

@Controller('streams')
@UseGuards(SessionGuard)
@AllowAnonymousSession()
@UseSession()
class Streams {
  @Sse('promise')
  async promise(@CurrentSession() { id }: Session): Promise<Observable<object>> {
    return from([{ data: await late(id) }]);
  }

  @Sse('intercepted')
  @UseInterceptors({ intercept: (_: ExecutionContext, next: CallHandler) => next.handle() })
  intercepted(@CurrentSession() { id }: Session): Observable<object> {
    return from([0]).pipe(
      concatMap(() => late(id)),
      map((data) => ({ data })),
    );
  }

  @Post('other')
  other(@CurrentSession() { id }: Session): Promise<object> {
    return late(id);
  }
}

@Controller('class')
@UseGuards(SessionGuard)
@AllowAnonymousSession()
@UseSession()
class MarkedClass {
  @Post('promise')
  promise(@CurrentSession() { id }: Session): Promise<object> {
    return late(id);
  }
}

@Controller('tool')
@UseGuards(SessionGuard, ToolGuard, LastGuard)
@AllowAnonymousSession()
class Tools {
  @Post('method')
  @UseSession()
  @RequireTool('search')
  search(): object {
    return { done: true };
  }
}

@Controller('tool')
@UseGuards(SessionGuard, ToolGuard, LastGuard)
@AllowAnonymousSession()
@RequireTool('search')
class MarkedTools {
  @Post('class')
  @UseSession()
  search(): object {
    return { done: true };
  }
}

/** Sessions in a table of the application, which has only the five methods that it must have. */
function withOwnTable(): SessionsAdapter {
  const table = new InMemorySessionStoreAdapter();
  const sessions: SessionStoreAdapter = {
    insert: (session) => table.insert(session),
    fetchById: (id) => table.fetchById(id),
    fetchMany: (query) => table.fetchMany(query),
    update: (id, patch) => table.update(id, patch),
    delete: (id) => table.delete(id),
  };
  return { ...memoryAdapter(), sessions };
}

describe.each([...SAMPLED_STORES, { name: 'an own session table', open: withOwnTable }])(
  'a request whose session is deleted and created again, over $name',
  ({ open }) => {
    const closing: (() => Promise<void>)[] = [];

    beforeEach(() => {
      [entered, replaced] = [gate(), gate()];
    });

    afterEach(async () => {
      for (const close of closing.splice(0)) await close();
    });

    async function start() {
      const controllers = [Handlers, Streams, MarkedClass, Tools, MarkedTools];
      const imports = [
        SessionsModule.forRoot({ adapter: open(), sweep: false }),
        SessionsModule.forFeature([desk, PLAN]),
      ];
      const app = (await Test.createTestingModule({ imports, controllers }).compile()).createNestApplication({
        logger: false,
      });
      await app.init();
      closing.push(() => app.close());
      const get = <T>(type: Type<T>): T => app.get(type, { strict: false });
      const ask = async (route: string, id: string): Promise<request.Response> => {
        const [method, path] = route.split(' ') as ['GET' | 'POST', string];
        const client = request(app.getHttpServer() as Server);
        return (method === 'GET' ? client.get(path) : client.post(path)).set('x-session-id', id);
      };
      const [sessions, state, plans] = [get(SessionStore), get(SessionStateService), get(OrchestrationStateManager)];
      return { ask, sessions, turns: get(TurnService), state, plans };
    }

    const routes = [
      'POST /promise',
      'POST /observable',
      'GET /events',
      'POST /tool',
      'POST /class/promise',
      'GET /streams/promise',
      'GET /streams/intercepted',
      'POST /streams/other',
    ];
    it.each(routes)('FIX-90 writes nothing to the new session in %s', async (route) => {
      const { ask, sessions, turns, state, plans } = await start();
      const { id } = await sessions.create({ userId: 'ann' });
      const writes = [
        (): Promise<unknown> => sessions.updateMetadata(id, { of: 'ann' }),
        (): Promise<unknown> => sessions.revoke(id),
        (): Promise<unknown> => turns.submit('desk', 'late', { sessionId: id }),
        (): Promise<unknown> => state.tools.set(id, 'search', 'k', 'of ann'),
        (): Promise<unknown> => state.task.create(id),
        (): Promise<unknown> => state.flow.save(id, 'onboarding', 'of ann'),
        (): Promise<unknown> => plans.getOrCreateState(id),
      ];
      const refused: unknown[] = [];
      work = async () => {
        for (const write of writes) refused.push(await write().catch((error: { code: string }) => error.code));
      };
      const answer = ask(route, id);
      await entered.pass();
      await sessions.delete(id);
      const other = await sessions.create({ id, userId: 'bob' });
      replaced.open();

      await answer;
      expect(refused).toEqual(writes.map(() => 'SESSION_NOT_FOUND'));
      expect(await sessions.get(id)).toEqual(other);
      expect(await turns.list({ sessionId: id })).toEqual([]);
      expect(await state.tools.get(id, 'search', 'k')).toBeNull();
    });

    it.each(['POST /tool/method', 'POST /tool/class'])(
      'FIX-90 records no use of a tool in the new session in %s',
      async (route) => {
        const { ask, sessions, plans } = await start();
        const { id } = await sessions.create({ userId: 'ann' });
        afterGuards = async () => {
          await sessions.delete(id);
          await sessions.create({ id, userId: 'bob' });
        };

        expect((await ask(route, id)).ok).toBe(false);
        expect(await plans.getState(id)).toBeNull();
      },
    );

    it('FIX-90 lets a request write to a session of another application that has the same id', async () => {
      const [{ ask, sessions }, other] = [await start(), await start()];
      const { id } = await sessions.create({ userId: 'ann' });
      await other.sessions.create({ id, userId: 'bob' });
      work = () => other.sessions.updateMetadata(id, { of: 'both' });
      replaced.open();

      expect((await ask('POST /promise', id)).status).toBe(201);
      expect(await other.sessions.get(id)).toMatchObject({ userId: 'bob', metadata: { of: 'both' } });
    });

    it('FIX-90 lets a request delete its session, create it again and write to it', async () => {
      const { ask, sessions } = await start();
      const { id } = await sessions.create({ userId: 'ann' });
      work = async () => {
        await sessions.delete(id);
        await sessions.create({ id, userId: 'ann' });
        await sessions.updateMetadata(id, { of: 'created' });
        await sessions.delete(id);
        await sessions.getOrCreate({ id, userId: 'ann' });
        await sessions.updateMetadata(id, { of: 'getOrCreate' });
      };
      replaced.open();
      expect((await ask('POST /promise', id)).status).toBe(201);
      expect(await sessions.get(id)).toMatchObject({ metadata: { of: 'getOrCreate' } });
    });

    it('FIX-90 lets a request write to a session that getOrCreate returned to it', async () => {
      const { ask, sessions } = await start();
      const { id } = await sessions.create({ userId: 'ann' });
      work = async () => {
        await sessions.getOrCreate({ id, userId: 'ann' });
        await sessions.updateMetadata(id, { of: 'both' });
      };
      const answer = ask('POST /promise', id);
      await entered.pass();
      await sessions.delete(id);
      await sessions.create({ id, userId: 'ann' });
      replaced.open();
      expect((await answer).status).toBe(201);
      expect(await sessions.get(id)).toMatchObject({ metadata: { of: 'both' } });
    });

    it.each(['POST /promise', 'GET /events'])('FIX-90 does not limit code that %s leaves behind', async (route) => {
      const { ask, sessions } = await start();
      const { id } = await sessions.create({ userId: 'ann' });
      const [again, written] = [gate(), gate()];
      let outcome: unknown;
      work = async () => {
        void again
          .pass()
          .then(() => sessions.updateMetadata(id, { of: 'connection' }))
          .then(
            () => (outcome = 'written'),
            (error: unknown) => (outcome = error),
          )
          .finally(() => written.open());
      };
      replaced.open();
      await ask(route, id);
      await sessions.delete(id);
      await sessions.create({ id, userId: 'ann' });
      again.open();
      await written.pass();
      expect(outcome).toBe('written');
    });
  },
);
