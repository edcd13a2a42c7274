import { type ModuleMetadata } from '@nestjs/common';
import { provide } from './common/nest-providers.js';
import { RequestKeys } from './http/state/request-keys.js';
import { StateAudit } from './http/state/state-audit.js';
import { StateCalls } from './http/state/state-calls.js';
import { stateController } from './http/state/state-controller.js';
import { SessionsControllersOptions, StateControllerOptions } from './http/state/state-controller.options.js';
import { StateEvents } from './http/state/state-events.js';
import { StateExceptionFilter } from './http/state/state-exception.filter.js';
import { StateRoutesModule } from './http/state/state-routes.module.js';
import { SessionStore } from './session/session-store.service.js';
import { type SessionsAdapter } from './sessions.adapter.js';
import { check } from './sessions.settings.js';
import { SESSIONS_ADAPTER } from './sessions.tokens.js';
import { SessionStateService } from './state/session-state.service.js';

type Parts = Required<Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'>>;

/**
 * The controllers that are enabled, and what they need (NST-16).
 * @throws SessionsConfigurationError for a controller without a guard
 */
export function sessionsControllers(options?: SessionsControllersOptions): Parts {
  const given = check(SessionsControllersOptions, 'controllers', options);
  if (given.state === undefined) return { imports: [], controllers: [], providers: [] };
  const { guards, path = 'state', imports = [] } = check(StateControllerOptions, 'controllers.state', given.state);
  return {
    imports: [...imports, StateRoutesModule],
    controllers: [stateController({ guards, path })],
    providers: [
      provide(StateAudit, [StateEvents], (events: StateEvents) => new StateAudit(events)),
      provide(
        StateCalls,
        [SessionStateService, SessionStore, SESSIONS_ADAPTER, StateAudit],
        (state: SessionStateService, sessions: SessionStore, adapter: SessionsAdapter, audit: StateAudit) =>
          new StateCalls(state, sessions, new RequestKeys(adapter.state), audit),
      ),
      StateExceptionFilter,
    ],
  };
}
