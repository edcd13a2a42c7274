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

/** A controller of this package: behind these guards, in every version of the API, with one filter for all of its errors. */
export function GuardedController(options: {
  readonly path: string;
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly filter: Filter;
}): ClassDecorator {
  const { path, guards, filter } = options;
  return (target) => {
    applyDecorators(
      Controller({ path, version: VERSION_NEUTRAL }),
      UseGuards(...guards),
      UseFilters(filter),
    )(target as unknown as Type);
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(target.prototype as object))) {
      if (typeof value === 'function' && value !== target) SetMetadata(FILTER, filter)(value as Type);
    }
  };
}

/** The filter of a handler of this package: what the metadata of a handler says, Nest hands on to what it registers for it. */
export function filterOf(handler: unknown): Filter | undefined {
  return typeof handler === 'function' ? (Reflect.getMetadata(FILTER, handler) as Filter | undefined) : undefined;
}
