import 'reflect-metadata';
import { type Server } from 'node:http';
import { Controller, Get, type INestApplication, Injectable, type Type, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import {
  AllowAnonymousSession,
  CurrentSession,
  defineStepPlan,
  OrchestrationStateManager,
  RequireTool,
  type Session,
  SessionGuard,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
  ToolGuard,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { rejection } from '../support/running-application.js';

const PLAN = defineStepPlan({
  agent: 'agent',
  steps: [{ name: 'only', isDefault: true, availableTools: { allowed: ['search'] } }],
});

/** Wraps the method and loses its metadata, as decorators for tracing or transactions do. */
const Timed = (): MethodDecorator => (_target, _key, descriptor) => {
  const inner = descriptor.value as (...args: unknown[]) => unknown;
  const wrapper = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    return inner.apply(this, args);
  };
  return { ...descriptor, value: wrapper } as typeof descriptor;
};

@Controller('wrapped')
@UseGuards(SessionGuard, ToolGuard)
class Wrapped {
  @Get('session')
  @Timed()
  @UseSession()
  session(@CurrentSession() session: Session | undefined): object {
    return { id: session?.id };
  }

  @Get('anonymous')
  @Timed()
  @AllowAnonymousSession()
  @UseSession()
  anonymous(@CurrentSession() session: Session | undefined): object {
    return { id: session?.id };
  }

  @Get('denied')
  @Timed()
  @RequireTool('delete')
  @UseSession()
  denied(): object {
    return { done: true };
  }

  @Get('allowed')
  @Timed()
  @RequireTool('search')
  @UseSession()
  allowed(): object {
    return { done: true };
  }
}

@Controller('overriding')
class Overriding extends Wrapped {
  @Get('session')
  override session(session: Session | undefined): object {
    return super.session(session);
  }

  @Get('denied')
  override denied(): object {
    return { done: true };
  }
}

@Controller()
class LostGuard {
  @Get()
  @Timed()
  @UseGuards(SessionGuard)
  @UseSession()
  chat(): void {}
}

@Controller()
class LostToolGuard {
  @Get()
  @UseGuards(SessionGuard)
  @Timed()
  @UseGuards(ToolGuard)
  @UseSession()
  @RequireTool('search')
  chat(): void {}
}

@Controller()
@UseSession()
class LostGuardOfClassMark {
  @Get()
  @Timed()
  @UseGuards(SessionGuard)
  chat(): void {}
}

@Controller()
class LostRoute {
  @Timed()
  @Get()
  @UseGuards(SessionGuard)
  @UseSession()
  chat(): void {}
}

@Injectable()
class OwnGuard extends SessionGuard {}

@Controller()
class GuardedBySubclass {
  @Get()
  @UseGuards(OwnGuard)
  @UseSession()
  chat(): string {
    return 'hi';
  }
}

@Injectable()
class LaxToolGuard extends ToolGuard {
  override canActivate(): boolean {
    return true;
  }
}

@Controller()
class LaxlyGuarded {
  @Get()
  @UseGuards(SessionGuard, LaxToolGuard)
  @UseSession()
  @RequireTool('search')
  chat(): string {
    return 'found';
  }
}

@Controller()
class Unguarded {
  @Get()
  @UseSession()
  chat(): string {
    return 'hi';
  }
}

@Controller()
class UnguardedMessages {
  @MessagePattern('chat')
  @UseSession()
  chat(): void {}
}

describe('handlers whose method was replaced', () => {
  let app: INestApplication<Server> | undefined;

  async function start(
    controller: Type,
    build: (builder: TestingModuleBuilder) => unknown = () => 0,
  ): Promise<INestApplication<Server>> {
    const builder = moduleWith(controller);
    build(builder);
    app = (await builder.compile()).createNestApplication({ logger: false });
    return app.init();
  }

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  async function get(path: string, user?: string): Promise<request.Response> {
    const running = app as INestApplication<Server>;
    const { id } = await running.get(SessionStore).create({ userId: 'ann' });
    const call = request(running.getHttpServer()).get(path).set('x-session-id', id);
    return user === undefined ? call : call.set('x-user', user);
  }

  it.each([
    ['a decorator wraps the method', Wrapped, 'wrapped'],
    ['a subclass overrides the method', Overriding, 'overriding'],
  ])('FIX-72 keeps @UseSession() and @RequireTool() if %s', async (_, controller, path) => {
    await start(controller);
    expect(await get(`/${path}/session`)).toMatchObject({ status: 401 });
    expect(await get(`/${path}/session`, 'bob')).toMatchObject({ status: 404 });
    expect(await get(`/${path}/session`, 'ann')).toMatchObject({ status: 200 });
    expect(await get(`/${path}/denied`, 'ann')).toMatchObject({ status: 403, body: { code: 'TOOL_NOT_ALLOWED' } });
  });

  it('FIX-72 keeps @AllowAnonymousSession(), and records the use of a wrapped tool', async () => {
    const running = await start(Wrapped);
    expect(await get('/wrapped/anonymous')).toMatchObject({ status: 200 });
    const { id } = await running.get(SessionStore).create({ userId: 'ann' });
    await request(running.getHttpServer())
      .get('/wrapped/allowed')
      .set({ 'x-session-id': id, 'x-user': 'ann' })
      .expect(200);
    const state = await running.get(OrchestrationStateManager).getState(id);
    expect(state?.toolHistory).toMatchObject([{ tool: 'search', outcome: 'succeeded' }]);
  });

  it.each([
    ['its guard', LostGuard, 'LostGuard.chat has @UseSession(), but SessionGuard does not run for it.'],
    ['its tool guard', LostToolGuard, 'LostToolGuard.chat has @RequireTool(), but ToolGuard does not run for it.'],
    ['the guard for a mark of the class', LostGuardOfClassMark, 'LostGuardOfClassMark.chat has @UseSession(), but'],
    ['its route', LostRoute, 'LostRoute.chat has @UseSession(), but SessionGuard does not run for it.'],
    ['a guard that it never had', Unguarded, 'Unguarded.chat has @UseSession(), but SessionGuard does not run for it.'],
  ])('FIX-72 stops the start if a marked handler lost %s', async (_, controller, message) => {
    const error = await rejection(start(controller), SessionsConfigurationError);
    expect(error.message).toContain(message);
    expect(error.message).toContain('@UseGuards() must be above decorators that wrap the method');
  });

  it('FIX-72 stops the start of a process without HTTP only for handlers of messages', async () => {
    const worker = await moduleWith(Unguarded).compile();
    await worker.init();
    await worker.close();
    const microservice = await moduleWith(UnguardedMessages).compile();
    const error = await rejection(microservice.init(), SessionsConfigurationError);
    expect(error.message).toContain('UnguardedMessages.chat has @UseSession(), but SessionGuard does not run for it.');
  });

  it('NST-14 runs no handler whose tool guard was replaced', async () => {
    await start(LaxlyGuarded);
    expect(await get('/', 'ann')).toMatchObject({ status: 500 });
  });

  it('FIX-72 accepts a subclass of the guard, a global guard, and a guard that a test replaces', async () => {
    await start(GuardedBySubclass);
    expect(await get('/')).toMatchObject({ status: 401 });
    await app?.close();
    await start(GuardedBySubclass, (builder) => builder.overrideGuard(OwnGuard).useValue({ canActivate: () => true }));
    expect(await get('/')).toMatchObject({ status: 200 });
    await app?.close();

    app = (await moduleWith(Unguarded).compile()).createNestApplication({ logger: false });
    await app.useGlobalGuards(app.get(SessionGuard)).init();
    expect(await get('/')).toMatchObject({ status: 401 });
    await app.close();

    const global = { provide: APP_GUARD, useExisting: SessionGuard };
    app = (await moduleWith(Unguarded, [global]).compile()).createNestApplication({ logger: false });
    await app.init();
    expect(await get('/')).toMatchObject({ status: 401 });
  });
});

function moduleWith(controller: Type, providers: object[] = []): TestingModuleBuilder {
  return Test.createTestingModule({
    imports: [
      SessionsModule.forRoot({
        sweep: false,
        principal: (context) => {
          const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
          return headers['x-user'] === undefined ? null : { userId: headers['x-user'] };
        },
      }),
      SessionsModule.forFeature([PLAN]),
    ],
    controllers: [controller],
    providers: providers as never,
  });
}
