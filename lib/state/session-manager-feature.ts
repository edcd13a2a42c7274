import { type FactoryProvider, Inject } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { findProvider, lazily } from '../common/nest-providers.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SESSIONS_ADAPTER } from '../common/sessions.tokens.js';
import { checkedOptions, SessionManager, type SessionManagerDefinition } from './session-manager.js';
import { type DocumentStore } from '../ledger/state.store.js';
import { stateMessages } from './state.messages.js';

/** The results of `defineSessionManager`. */
const definitions = new WeakSet<object>();

/**
 * Defines a {@link SessionManager} on the application's store. Register it with `SessionsModule.forFeature([carts])`
 * and inject it with `@InjectSessionManager(carts)`.
 * @throws InvalidInputError for invalid options
 */
export function defineSessionManager<T>(options: SessionManagerDefinition<T>): SessionManagerDefinition<T> {
  const definition = Object.freeze(checkedOptions(options));
  definitions.add(definition);
  return definition;
}

export function isSessionManagerDefinition(value: unknown): value is SessionManagerDefinition {
  return typeof value === 'object' && value !== null && definitions.has(value);
}

/** Injects a session manager that `forFeature` registered. */
export const InjectSessionManager = <T>(
  definition: SessionManagerDefinition<T>,
): ParameterDecorator & PropertyDecorator => Inject(getSessionManagerToken(definition));

/** Returns the injection token of a session manager. */
export function getSessionManagerToken<T>({ namespace }: SessionManagerDefinition<T>): string {
  return `AgentSessionsSessionManager(${namespace})`;
}

/** Finds the store at the first use, so that a feature module need not import the module of `forRoot`. */
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
  throw new SessionsConfigurationError(stateMessages.managerTooEarly(namespace));
}
