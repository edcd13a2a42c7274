import { Module, type NestModule, type Type } from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { type ControllersExceptionFilter } from './controllers-exception.filter.js';
import { filterIn, filterOf } from './guarded-controller.js';
import { type HttpRequest } from './http-request.js';

type EarlyErrorHandler = (error: unknown, request: HttpRequest, response: object) => void;

/** The part of Fastify that this module uses. */
interface Fastify {
  addHook(
    name: 'onRoute',
    hook: (route: { readonly config?: object; errorHandler?: EarlyErrorHandler }) => void,
  ): unknown;
}

/** The part of Express that this module uses. */
interface Express {
  readonly router: { readonly stack: readonly ExpressLayer[] };
}

interface ExpressLayer {
  readonly route?: { readonly stack: readonly { readonly method: string; readonly handle: unknown }[] };
  match(path: string): unknown;
}

/**
 * Handles errors from before this package's routes, mainly of body parsers, like all other errors. Nest passes them
 * only to global filters, and a global filter would conflict with the application's.
 */
@Module({})
export class EarlyErrorsModule implements NestModule {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly moduleRef: ModuleRef,
  ) {}

  /** Called after the parsers are registered and before the routes are. */
  configure(): void {
    const { httpAdapter } = this.adapterHost;
    if (httpAdapter.getType() === 'fastify') {
      httpAdapter.getInstance<Fastify>().addHook('onRoute', (route) => {
        const handle = this.handlerFor(filterIn(route.config));
        if (handle) route.errorHandler = handle;
      });
      return;
    }
    // Express recognizes an error handler by its four parameters.
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

/** Returns the handler of the route that the request is for. */
function handlerAt({ router }: Express, { method, url }: HttpRequest): unknown {
  const [path] = url.split('?');
  // HEAD requests are handled by the GET route if there is no HEAD route.
  const methods = method === 'HEAD' ? ['head', 'get'] : [method.toLowerCase()];
  for (const layer of router.stack) {
    const found = layer.route?.stack.find((one) => methods.includes(one.method));
    if (found && layer.match(path)) return found.handle;
  }
  return undefined;
}
