import { type InjectionToken, type Provider } from '@nestjs/common';
import { type ModuleRef } from '@nestjs/core';

/** Tokens in the order of a function's parameters. A symbol may stand for anything; a class must be that of its parameter. */
type TokensOf<Args extends unknown[]> = {
  readonly [Index in keyof Args]: (abstract new (...args: never[]) => Args[Index]) | symbol;
};

/** A provider made by a function of other providers: the domain's classes know nothing of injection. */
export function provide<Args extends unknown[]>(
  token: InjectionToken,
  inject: TokensOf<Args>,
  useFactory: (...args: Args) => unknown,
): Provider {
  return { provide: token, inject: [...inject], useFactory: (...args: unknown[]) => useFactory(...(args as Args)) };
}

/** A provider made by its constructor, as {@link provide}. */
export function provideClass<Args extends unknown[]>(
  type: new (...args: Args) => unknown,
  inject: TokensOf<Args>,
): Provider {
  return provide(type, inject, (...args: Args) => new type(...args));
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
