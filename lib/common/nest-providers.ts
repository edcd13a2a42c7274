import { type InjectionToken, type Provider, Scope } from '@nestjs/common';
import { type ModuleRef } from '@nestjs/core';
import { commonMessages } from './common.messages.js';
import { SessionsConfigurationError } from './sessions.error.js';

/** Tokens in the order of a function's parameters. A symbol matches any type; a class must match its parameter. */
type TokensOf<Args extends unknown[]> = {
  readonly [Index in keyof Args]: (abstract new (...args: never[]) => Args[Index]) | symbol;
};

/** Creates a provider from a function of other providers, so that domain classes do not depend on Nest's injection. */
export function provide<Args extends unknown[]>(
  token: InjectionToken,
  inject: TokensOf<Args>,
  useFactory: (...args: Args) => unknown,
): Provider {
  return { provide: token, inject: [...inject], useFactory: (...args: unknown[]) => useFactory(...(args as Args)) };
}

/** Creates a provider from a constructor, like {@link provide}. */
export function provideClass<Args extends unknown[]>(
  type: new (...args: Args) => unknown,
  inject: TokensOf<Args>,
): Provider {
  return provide(type, inject, (...args: Args) => new type(...args));
}

/**
 * Finds a provider in any module of the application, or returns null.
 * @throws SessionsConfigurationError if it is not a singleton
 */
export function findProvider<T>(
  moduleRef: ModuleRef,
  token: (abstract new (...args: never[]) => T) | InjectionToken,
): T | null {
  const scope = scopeOf(moduleRef, token as InjectionToken);
  if (scope === null) return null;
  if (scope !== Scope.DEFAULT) {
    const name = typeof token === 'function' ? token.name : String(token);
    throw new SessionsConfigurationError(commonMessages.notASingleton(name));
  }
  return moduleRef.get<T>(token as InjectionToken<T>, { strict: false });
}

/** Returns null if no module has the provider, for which Nest throws an error that it does not export. */
function scopeOf(moduleRef: ModuleRef, token: InjectionToken): Scope | null {
  try {
    return moduleRef.introspect(token as string).scope;
  } catch {
    return null;
  }
}

/** Calls the function once, at the first use. */
export function lazily<T>(ask: () => T): () => T {
  let answer: { readonly value: T } | undefined;
  return () => (answer ??= { value: ask() }).value;
}
