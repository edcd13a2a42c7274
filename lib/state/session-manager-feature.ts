import { type FactoryProvider, Inject } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { findProvider, lazily } from '../common/nest-providers.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SESSIONS_ADAPTER } from '../common/sessions.tokens.js';
import { checkedOptions, SessionManager, type SessionManagerOptions } from './session-manager.js';
import { type DocumentStore } from '../ledger/state.store.js';

/** What `defineSessionManager` has made. */
const definitions = new WeakSet<object>();

/** Which session manager is meant: to register it, and to inject it. */
export type SessionManagerDefinition<T = unknown> = Readonly<SessionManagerOptions<T>>;

/**
 * A {@link SessionManager} on the application's store: register it with `SessionsModule.forFeature([carts])`, inject it with
 * `@InjectSessionManager(carts)`.
 * @throws InvalidInputError for wrong options
 */
export function defineSessionManager<T>(options: SessionManagerOptions<T>): SessionManagerDefinition<T> {
  const definition = Object.freeze(checkedOptions(options));
  definitions.add(definition);
  return definition;
}

export function isSessionManagerDefinition(value: unknown): value is SessionManagerDefinition {
  return typeof value === 'object' && value !== null && definitions.has(value);
}

/** Injects the session manager that `forFeature` registered. */
export const InjectSessionManager = <T>(
  definition: SessionManagerDefinition<T>,
): ParameterDecorator & PropertyDecorator => Inject(getSessionManagerToken(definition));

/** The token under which a session manager is provided. */
export function getSessionManagerToken<T>({ namespace }: SessionManagerDefinition<T>): string {
  return `AgentSessionsSessionManager(${namespace})`;
}

/** It looks the store up at the first use, so that a feature module need not import the module that `forRoot` made. */
export function sessionManagerProvider(definition: SessionManagerDefinition): FactoryProvider<SessionManager<unknown>> {
  return {
    provide: getSessionManagerToken(definition),
    inject: [ModuleRef],
    useFactory: (moduleRef: ModuleRef) =>
      new SessionManager(
        lazily(() => storeOf(moduleRef, definition)),
        definition,
      ),
  };
}

function storeOf(moduleRef: ModuleRef, { namespace }: SessionManagerDefinition): DocumentStore {
  const adapter = findProvider<{ readonly state: DocumentStore }>(moduleRef, SESSIONS_ADAPTER);
  if (adapter) return adapter.state;
  throw new SessionsConfigurationError(
    `The session manager ${namespace} has no SessionsModule.forRoot() to keep its states in. Import it once, in the ` +
      "application's root module.",
  );
}
