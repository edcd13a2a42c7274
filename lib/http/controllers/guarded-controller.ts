import {
  applyDecorators,
  type CanActivate,
  Controller,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { type ControllersExceptionFilter } from './controllers-exception.filter.js';

type Filter = Type<ControllersExceptionFilter>;

const FILTER = Symbol('agent-sessions:filter');
/** Of @nestjs/platform-fastify's `@RouteConfig()`: where an address has parameters it hands on nothing else of a handler. */
const FASTIFY_CONFIG = '__fastify_route_config__';

/** A controller of this package: behind these guards, in every version of the API, with one filter for all of its errors. */
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
      UseFilters(filter),
    )(target as unknown as Type);
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(target.prototype as object))) {
      if (typeof value === 'function' && value !== target) marked(value as Type);
    }
  };
}

/** The filter of a route's configuration, in Fastify. */
export function filterIn(config: object | undefined): Filter | undefined {
  return (config as { readonly [FILTER]?: Filter } | undefined)?.[FILTER];
}

/** The filter of a handler: what the metadata of a handler says, Nest hands on to what it registers for it in Express. */
export function filterOf(handler: unknown): Filter | undefined {
  return typeof handler === 'function' ? (Reflect.getMetadata(FILTER, handler) as Filter | undefined) : undefined;
}
