import { type Provider } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { provide } from '../common/nest-providers.js';
import { HttpConnections } from '../http/http-connections.js';
import { StateEvents } from '../http/state/state-events.js';
import { type SessionsSettings } from './sessions.settings.js';
import { PRINCIPAL_RESOLVER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { checkedPrincipals } from '../transport/principal.js';
import { SessionGuard } from '../transport/session.guard.js';
import { SessionsExceptionFilter } from '../transport/sessions-exception.filter.js';
import { ToolGuard } from '../transport/tool.guard.js';

/** What the application's own controllers, gateways and resolvers meet; the package's controllers are extra. */
export const TRANSPORT_PROVIDERS: Provider[] = [
  provide(PRINCIPAL_RESOLVER, [SESSIONS_SETTINGS], ({ principal }: SessionsSettings) => checkedPrincipals(principal)),
  SessionGuard,
  ToolGuard,
  StateEvents,
  HttpConnections,
  { provide: APP_FILTER, useClass: SessionsExceptionFilter },
];
