import { type InjectionToken, type Provider } from '@nestjs/common';
import { type ModuleRef } from '@nestjs/core';

/** A provider made by a function of other providers: the domain's classes know nothing of injection. */
export function provide(
  token: InjectionToken,
  inject: InjectionToken[],
  useFactory: (...args: never[]) => unknown,
): Provider {
  return { provide: token, inject, useFactory: useFactory as (...args: unknown[]) => unknown };
}

/** A provider in any module of the application, or null. */
export function findProvider<T>(
  moduleRef: ModuleRef,
  token: (abstract new (...args: never[]) => T) | InjectionToken,
): T | null {
  try {
    return moduleRef.get<T>(token as InjectionToken<T>, { strict: false });
  } catch {
    return null;
  }
}

/** Asks once, at the first use. */
export function lazily<T>(ask: () => T): () => T {
  let answer: { readonly value: T } | undefined;
  return () => (answer ??= { value: ask() }).value;
}
