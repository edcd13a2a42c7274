import {
  applyDecorators,
  type CanActivate,
  Controller,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { type ControllersExceptionFilter } from './controllers-exception.filter.js';
import { PrivateResponseInterceptor } from './private-response.interceptor.js';

type Filter = Type<ControllersExceptionFilter>;

const FILTER = Symbol('agent-sessions:filter');
/**
 * The metadata key of `@RouteConfig()` in @nestjs/platform-fastify. For URLs with parameters it is the only handler
 * metadata that Nest passes on.
 */
const FASTIFY_CONFIG = '__fastify_route_config__';

/**
 * Marks a controller of this package: protected by these guards, in every API version, with one filter for all its
 * errors, and with responses that no cache stores.
 */
export function GuardedController(options: {
  readonly path: string;
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly filter: Filter;
}): ClassDecorator {
  const { path, guards, filter } = options;
  const marked = applyDecorators(SetMetadata(FILTER, filter), SetMetadata(FASTIFY_CONFIG, { [FILTER]: filter }));
  return (target) => {
    applyDecorators(
      Controller({ path, version: VERSION_NEUTRAL }),
      UseGuards(...guards),
      UseInterceptors(new PrivateResponseInterceptor()),
      UseFilters(filter),
    )(target as unknown as Type);
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(target.prototype as object))) {
      if (typeof value === 'function' && value !== target) marked(value as Type);
    }
  };
}

/** Returns the filter in the configuration of a Fastify route. */
export function filterIn(config: object | undefined): Filter | undefined {
  const marked: { readonly [FILTER]?: Filter } | undefined = config;
  return marked?.[FILTER];
}

/**
 * Returns the filter of a handler in Express, where Nest copies the handler's metadata to the function that it
 * registers.
 */
export function filterOf(handler: unknown): Filter | undefined {
  return typeof handler === 'function' ? (Reflect.getMetadata(FILTER, handler) as Filter | undefined) : undefined;
}
