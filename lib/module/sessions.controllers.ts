import { type ModuleMetadata } from '@nestjs/common';
import { checkOptions } from '../common/check-options.js';
import { provide, provideClass } from '../common/nest-providers.js';
import { agentName } from '../orchestration/agent-ref.js';
import { ControllersExceptionFilter } from '../http/controllers/controllers-exception.filter.js';
import { SessionsControllersOptions } from '../http/controllers/controllers.options.js';
import { EarlyErrorsModule } from '../http/controllers/early-errors.module.js';
import { sessionsController } from '../http/sessions/sessions-controller.js';
import { SessionsControllerOptions } from '../http/sessions/sessions-controller.options.js';
import { RequestKeys } from '../http/state/request-keys.js';
import { StateAudit } from '../http/state/state-audit.js';
import { StateCalls } from '../http/state/state-calls.js';
import { stateController } from '../http/state/state-controller.js';
import { StateControllerOptions } from '../http/state/state-controller.options.js';
import { StateEvents } from '../http/state/state-events.js';
import { StateExceptionFilter } from '../http/state/state-exception.filter.js';
import { ClientTurns } from '../http/turns/client-turns.js';
import { turnsController } from '../http/turns/turns-controller.js';
import { TurnsControllerOptions } from '../http/turns/turns-controller.options.js';
import { SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { SESSIONS_ADAPTER } from '../common/sessions.tokens.js';
import { SessionStateService } from '../state/session-state.service.js';
import { TurnRunner } from '../turn/turn-runner.js';
import { TurnService } from '../turn/turn.service.js';

type Parts = Required<Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'>>;

/**
 * The controllers that are enabled, and what they need (NST-16).
 * @throws SessionsConfigurationError for a controller without a guard
 */
export function sessionsControllers(options?: SessionsControllersOptions): Parts {
  const { sessions, turns, state } = checkOptions(SessionsControllersOptions, 'controllers', options);
  const parts = [
    ...(sessions === undefined ? [] : [sessionsParts(sessions)]),
    ...(turns === undefined ? [] : [turnsParts(turns)]),
    ...(state === undefined ? [] : [stateParts(state)]),
  ];
  if (parts.length === 0) return { imports: [], controllers: [], providers: [] };
  return {
    imports: [EarlyErrorsModule, ...parts.flatMap(({ imports }) => imports)],
    controllers: parts.flatMap(({ controllers }) => controllers),
    providers: [ControllersExceptionFilter, ...parts.flatMap(({ providers }) => providers)],
  };
}

function sessionsParts(given: SessionsControllerOptions): Parts {
  const options = checkOptions(SessionsControllerOptions, 'controllers.sessions', given);
  return { imports: options.imports ?? [], controllers: [sessionsController(options)], providers: [] };
}

function turnsParts(given: TurnsControllerOptions): Parts {
  const options = checkOptions(TurnsControllerOptions, 'controllers.turns', given);
  const allowed = {
    orchestrators: options.orchestrators.map(agentName),
    whenBusy: options.whenBusy ?? [],
    maxStreamsPerPrincipal: options.maxStreamsPerPrincipal ?? 16,
  };
  return {
    imports: options.imports ?? [],
    controllers: [turnsController(options)],
    providers: [
      provide(
        ClientTurns,
        [TurnService, TurnRunner, SessionStore],
        (turns: TurnService, runner: TurnRunner, sessions: SessionStore) =>
          new ClientTurns(turns, runner, sessions, allowed),
      ),
    ],
  };
}

function stateParts(given: StateControllerOptions): Parts {
  const options = checkOptions(StateControllerOptions, 'controllers.state', given);
  return {
    imports: options.imports ?? [],
    controllers: [stateController(options)],
    providers: [
      provideClass(StateAudit, [StateEvents]),
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
