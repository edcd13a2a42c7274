import 'reflect-metadata';
import { inspect } from 'node:util';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  HttpException,
  Module,
  type ModuleMetadata,
  Param,
  type Provider,
  Scope,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { afterEach } from '@jest/globals';
import {
  InvalidInputError,
  LaneFullError,
  SessionNotFoundError,
  SessionsConfigurationError,
  type SessionsError,
  SessionsModule,
  SessionStateError,
  StoreUnavailableError,
  SurfaceLimitError,
  ToolNotAllowedError,
  TurnTimeoutError,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { type HttpApp, PLATFORMS } from './http-app.js';

const ERRORS: readonly [number, SessionsError][] = [
  [400, new InvalidInputError('input.text', 'must be a string.')],
  [403, new ToolNotAllowedError('s1', 'pay', 'browse', ['search'])],
  [404, new SessionNotFoundError('s1')],
  [409, new SurfaceLimitError('s1', 16)],
  [409, new SessionStateError('s1', 'suspended', 'use')],
  [410, new SessionStateError('s1', 'expired', 'use')],
  [429, new LaneFullError('s1', 100)],
  [500, new TurnTimeoutError('t1', 500)],
  [500, new SessionsConfigurationError('hunter2')],
  [503, new StoreUnavailableError('hunter2', { cause: new Error('hunter2') })],
];

/** A filter as applications have it: of all errors, it knows only HttpException. */
@Catch()
class CatchAllFilter implements ExceptionFilter {
  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const status = error instanceof HttpException ? error.getStatus() : 500;
    const code = error instanceof HttpException ? error.getResponse() : null;
    this.adapterHost.httpAdapter.reply(host.switchToHttp().getResponse(), { mine: true, status, code }, status);
  }
}

/** Reads the fields, which TypeScript declares private. */
@Catch(HttpException)
class FieldsFilter implements ExceptionFilter {
  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const { status, response: code } = error as { status: number; response: unknown };
    this.adapterHost.httpAdapter.reply(host.switchToHttp().getResponse(), { mine: true, status, code }, status);
  }
}

/** Leaves the response to Nest. */
@Catch()
class DelegatingFilter extends BaseExceptionFilter {}

@Controller('throw')
class ThrowingController {
  @Get(':row')
  row(@Param('row') row: string): never {
    throw ERRORS[Number(row)][1];
  }
}

const globally = (filter: Type<ExceptionFilter>) => (app: HttpApp) =>
  app.useGlobalFilters(new filter(app.get(HttpAdapterHost)));

function featureOf(provider: Provider): DynamicModule {
  @Module({})
  class FilterModule {}
  return { module: FilterModule, providers: [provider] };
}

const sessions = (): DynamicModule => SessionsModule.forRoot({ sweep: false });
const ownFilter = (scope?: Scope): Provider => ({ provide: APP_FILTER, useClass: CatchAllFilter, scope });

const REGISTRATIONS: readonly [string, () => ModuleMetadata, ((app: HttpApp) => unknown)?][] = [
  ['useGlobalFilters', () => ({ imports: [sessions()] }), globally(CatchAllFilter)],
  ['useGlobalFilters, reading fields', () => ({ imports: [sessions()] }), globally(FieldsFilter)],
  ['APP_FILTER of the root module', () => ({ imports: [sessions()], providers: [ownFilter()] })],
  ['APP_FILTER of a module before this one', () => ({ imports: [featureOf(ownFilter()), sessions()] })],
  ['APP_FILTER of a module after this one', () => ({ imports: [sessions(), featureOf(ownFilter())] })],
  ['a request-scoped APP_FILTER', () => ({ imports: [sessions()], providers: [ownFilter(Scope.REQUEST)] })],
];

describe.each(PLATFORMS)('filters of the application on $name', ({ start }) => {
  let app: HttpApp | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it.each(REGISTRATIONS)(
    'FIX-75 lets a catch-all filter answer: %s',
    async (_, metadata, configure = () => undefined) => {
      app = await start({ ...metadata(), controllers: [ThrowingController] }, configure);

      for (const [row, [status, error]] of ERRORS.entries()) {
        const answer = await request(app.getHttpServer()).get(`/throw/${row}`).expect(status);
        expect(answer.body).toEqual({ mine: true, status, code: error.getResponse() });
        expect(error.getResponse()).toMatchObject({ statusCode: status, code: error.code });
        expect(answer.text).not.toContain('hunter2');
      }
    },
  );

  it('FIX-75 gives the stable body to a filter that delegates to Nest', async () => {
    app = await start({ imports: [sessions()], controllers: [ThrowingController] }, (each) =>
      each.useGlobalFilters(new DelegatingFilter(each.getHttpAdapter())),
    );

    for (const [row, [status, error]] of ERRORS.entries()) {
      const answer = await request(app.getHttpServer()).get(`/throw/${row}`).expect(status);
      expect(answer.body).toEqual(error.getResponse());
    }
  });
});

it('FIX-75 shows an error in logs as before: message, code, cause and stack', () => {
  const cause = new Error('ECONNREFUSED');
  const error = new StoreUnavailableError('The store failed.', { cause });

  expect(Object.keys(error).sort()).toEqual(['code', 'maybeApplied', 'name', 'reason']);
  expect(error.stack).toMatch(/^StoreUnavailableError: The store failed\.\n +at .*application-filters/);
  expect(inspect(error)).toContain('[cause]: Error: ECONNREFUSED');
  expect('cause' in new SessionNotFoundError('s1')).toBe(false);
});
