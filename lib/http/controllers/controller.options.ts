import { type CanActivate, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { Must, Optional } from '../../common/check-input.js';

/** What every controller of this package takes. */
export class ControllerOptions {
  /**
   * At least one: who may come near it at all, and where it is found out who asks. They come before anything else. Classes, which
   * may inject what `imports` and global modules provide; or instances.
   */
  @Must(
    (value) => Array.isArray(value) && value.length > 0 && value.every(isGuard),
    'must list at least one guard: a class with canActivate, or an instance of one.',
  )
  guards!: readonly (Type<CanActivate> | CanActivate)[];

  /** The path before its routes. Default: the name of the controller. */
  @Optional()
  @Must((value) => typeof value === 'string' && PATH.test(value), 'must be a path, for example admin/state.')
  path?: string;

  /** Modules whose providers the guards inject. Default: global ones only. */
  @Allow()
  imports?: ModuleMetadata['imports'];
}

const PATH = /^[\w-]+(\/[\w-]+)*$/;

function isGuard(value: unknown): boolean {
  const guard: unknown = typeof value === 'function' ? value.prototype : value;
  return (
    typeof guard === 'object' && guard !== null && 'canActivate' in guard && typeof guard.canActivate === 'function'
  );
}
