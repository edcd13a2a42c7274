import { Module, type NestModule, type Type } from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { type ControllersExceptionFilter } from './controllers-exception.filter.js';
import { filterIn, filterOf } from './guarded-controller.js';
import { type HttpRequest } from './http-request.js';

type EarlyErrorHandler = (error: unknown, request: HttpRequest, response: object) => void;

/** As much of Fastify as is needed here. */
interface Fastify {
  addHook(
    name: 'onRoute',
    hook: (route: { readonly config?: object; errorHandler?: EarlyErrorHandler }) => void,
  ): unknown;
}

/** As much of Express as is needed here. */
interface Express {
  readonly router: { readonly stack: readonly ExpressLayer[] };
}

interface ExpressLayer {
  readonly route?: { readonly stack: readonly { readonly method: string; readonly handle: unknown }[] };
  match(path: string): unknown;
}

/**
 * Errors from before this package's routes, which are those of body parsers: answered as all others are. Nest gives them to global
 * filters only, and a global one would be in the way of the application's own.
 */
@Module({})
export class EarlyErrorsModule implements NestModule {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly moduleRef: ModuleRef,
  ) {}

  /** Called after the parsers were registered, and before the routes are. */
  configure(): void {
    const { httpAdapter } = this.adapterHost;
    if (httpAdapter.getType() === 'fastify') {
      httpAdapter.getInstance<Fastify>().addHook('onRoute', (route) => {
        const handle = this.handlerFor(filterIn(route.config));
        if (handle) route.errorHandler = handle;
      });
      return;
    }
    // Express knows a handler of errors by its four parameters.
    httpAdapter.use((error: unknown, request: HttpRequest, response: object, next: (error: unknown) => void) => {
      const handle = this.handlerFor(filterOf(handlerAt(httpAdapter.getInstance<Express>(), request)));
      if (handle) handle(error, request, response);
      else next(error);
    });
  }

  private handlerFor(type: Type<ControllersExceptionFilter> | undefined): EarlyErrorHandler | undefined {
    if (!type) return undefined;
    const filter = this.moduleRef.get(type, { strict: false });
    return (error, request, response) => void filter.catchEarly(error, request, response);
  }
}

/** Where the request would have come to. */
function handlerAt({ router }: Express, { method, url }: HttpRequest): unknown {
  const [path] = url.split('?');
  // Where nobody asks for the head alone, whoever gives the whole is asked.
  const methods = method === 'HEAD' ? ['head', 'get'] : [method.toLowerCase()];
  for (const layer of router.stack) {
    const found = layer.route?.stack.find((one) => methods.includes(one.method));
    if (found && layer.match(path)) return found.handle;
  }
  return undefined;
}
