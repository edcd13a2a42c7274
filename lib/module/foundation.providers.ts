import { type Provider } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { provide, provideClass } from '../common/nest-providers.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import {
  OBSERVED_ADAPTER,
  SESSIONS_ADAPTER,
  SESSIONS_OPTIONS,
  SESSIONS_ROLE,
  SESSIONS_SETTINGS,
  TURN_QUEUE,
  PRINCIPAL_RESOLVER,
} from '../common/sessions.tokens.js';
import { HttpConnections } from '../http/http-connections.js';
import { StateEvents } from '../http/state/state-events.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { noopQueue } from '../queue/in-process/noop-queue.js';
import { observedAdapter } from '../telemetry/observed-adapter.js';
import { loadTelemetry } from '../telemetry/open-telemetry.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { CachedRoutesHint } from '../transport/cached-routes.hint.js';
import { HandlerExplorer } from '../transport/handler.explorer.js';
import { checkedPrincipals } from '../transport/principal.js';
import { SessionGuard } from '../transport/session.guard.js';
import { SessionsExceptionFilter } from '../transport/sessions-exception.filter.js';
import { ToolGuard } from '../transport/tool.guard.js';
import { assertOneRoot } from './assert-one-root.js';
import { moduleMessages } from './module.messages.js';
import { openStore } from './open-store.js';
import { type ProcessRole, type SessionsModuleOptions } from './sessions.options.js';
import { resolveOptions, type SessionsSettings } from './sessions.settings.js';

/** The settings, the store and the queue, which all other providers depend on. */
export const FOUNDATION_PROVIDERS: Provider[] = [
  provide(SESSIONS_SETTINGS, [SESSIONS_OPTIONS, ModulesContainer], settingsOf),
  provide(SESSIONS_ADAPTER, [SESSIONS_SETTINGS], openStore),
  provide(Telemetry, [SESSIONS_SETTINGS], telemetryOf),
  provide(OBSERVED_ADAPTER, [SESSIONS_ADAPTER, Telemetry], observedAdapter),
  provide(TURN_QUEUE, [SESSIONS_SETTINGS, SESSIONS_ROLE], queueOf),
];

function settingsOf(options: SessionsModuleOptions | undefined, modules: ModulesContainer): SessionsSettings {
  assertOneRoot(modules);
  if (options === undefined) throw new SessionsConfigurationError(moduleMessages.noOptions());
  return resolveOptions(options);
}

function telemetryOf({ telemetry }: SessionsSettings): Telemetry | Promise<Telemetry> {
  return telemetry ? loadTelemetry() : new Telemetry();
}

function queueOf({ queue, queueByDefault }: SessionsSettings, role: ProcessRole): TurnQueue {
  return queueByDefault && role === 'submit' ? noopQueue : queue;
}

/**
 * Guards, filters and decorators for the application's controllers, gateways and resolvers. The package's controllers
 * are separate.
 */
export const TRANSPORT_PROVIDERS: Provider[] = [
  provide(PRINCIPAL_RESOLVER, [SESSIONS_SETTINGS], ({ principal }: SessionsSettings) => checkedPrincipals(principal)),
  SessionGuard,
  CachedRoutesHint,
  ToolGuard,
  provideClass(HandlerExplorer, [ModulesContainer, ApplicationConfig, HttpAdapterHost, SessionGuard, ToolGuard]),
  StateEvents,
  HttpConnections,
  provide(SessionsExceptionFilter, [HttpAdapterHost, ApplicationConfig], globalFilter),
];

/**
 * Registers the filter before the application registers its own. Nest asks the filter that was registered last first, so
 * the application's filters take precedence (FIX-75).
 */
function globalFilter(adapterHost: HttpAdapterHost, config: ApplicationConfig): SessionsExceptionFilter {
  const filter = new SessionsExceptionFilter(adapterHost);
  config.addGlobalFilter(filter);
  return filter;
}
