import { Module, type NestModule } from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { type StateHttpRequest } from './state-call.js';
import { StateExceptionFilter } from './state-exception.filter.js';
import { isStateRoute } from './state-route.js';

type EarlyErrorHandler = (error: unknown, request: StateHttpRequest, response: object) => void;

/** As much of Fastify as is needed here. */
interface Fastify {
  addHook(
    name: 'onRoute',
    hook: (route: { readonly handler: unknown; errorHandler?: EarlyErrorHandler }) => void,
  ): unknown;
}

/** As much of Express as is needed here. */
interface Express {
  readonly router: { readonly stack: readonly ExpressLayer[] };
}

interface ExpressLayer {
  readonly route?: { readonly stack: readonly { readonly handle: unknown }[] };
  match(path: string): unknown;
}

/**
 * Errors from before the control plane's routes, which are those of body parsers: answered as all others are. Nest gives them to global
 * filters only, and a global one would be in the way of the application's own.
 */
@Module({})
export class StateRoutesModule implements NestModule {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly moduleRef: ModuleRef,
  ) {}

  /** Called after the parsers were registered, and before the routes are. */
  configure(): void {
    const { httpAdapter } = this.adapterHost;
    const filter = this.moduleRef.get(StateExceptionFilter, { strict: false });
    const handle: EarlyErrorHandler = (error, request, response) => filter.catchEarly(error, request, response);

    if (httpAdapter.getType() === 'fastify') {
      httpAdapter.getInstance<Fastify>().addHook('onRoute', (route) => {
        if (isStateRoute(route.handler)) route.errorHandler = handle;
      });
      return;
    }
    // Express knows a handler of errors by its four parameters.
    httpAdapter.use((error: unknown, request: StateHttpRequest, response: object, next: (error: unknown) => void) => {
      if (isOurs(httpAdapter.getInstance<Express>(), request)) handle(error, request, response);
      else next(error);
    });
  }
}

/** Whether it would have come to one of our routes. */
function isOurs({ router }: Express, { method, url }: StateHttpRequest): boolean {
  if (method !== 'POST') return false;
  const [path] = url.split('?');
  return router.stack.some(
    (layer) => layer.route?.stack.some(({ handle }) => isStateRoute(handle)) && layer.match(path),
  );
}
