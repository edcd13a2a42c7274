import { type ModuleMetadata } from '@nestjs/common';
import { checkOptions } from '../common/check-options.js';
import { provide, provideClass } from '../common/nest-providers.js';
import { SESSIONS_ADAPTER, SESSIONS_CONTROLLERS, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { chatController } from '../http/chat/chat-controller.js';
import { ChatResponses } from '../http/chat/chat-responses.js';
import { ChatSessions } from '../http/chat/chat-sessions.js';
import { ChatStream } from '../http/chat/chat-stream.js';
import { ChatTurns } from '../http/chat/chat-turns.js';
import { ClientChats } from '../http/chat/client-chats.js';
import { ControllersExceptionFilter } from '../http/controllers/controllers-exception.filter.js';
import {
  ChatControllerOptions,
  SessionsControllersOptions,
  SessionsControllerOptions,
  StateControllerOptions,
  TurnsControllerOptions,
} from '../http/controllers/controllers.options.js';
import { EarlyErrorsModule } from '../http/controllers/early-errors.module.js';
import { StreamSlots } from '../http/controllers/stream-slots.js';
import { sessionsController } from '../http/sessions/sessions-controller.js';
import { RequestKeys } from '../http/state/request-keys.js';
import { StateAudit } from '../http/state/state-audit.js';
import { StateCalls } from '../http/state/state-calls.js';
import { stateController } from '../http/state/state-controller.js';
import { StateEvents } from '../http/state/state-events.js';
import { StateExceptionFilter } from '../http/state/state-exception.filter.js';
import { ClientTurns } from '../http/turns/client-turns.js';
import { turnsController } from '../http/turns/turns-controller.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { agentName } from '../orchestration/agent-ref.js';
import { Transcript } from '../orchestrator/transcript.js';
import { SessionStore } from '../session/session-store.service.js';
import { SessionStateService } from '../state/session-state.service.js';
import { OpenResponses } from '../turn/open-responses.js';
import { TurnRunner } from '../turn/turn-runner.js';
import { TurnService } from '../turn/turn.service.js';
import { type SessionsSettings } from './sessions.settings.js';

type Parts = Required<Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'>>;

/**
 * Returns the enabled controllers and their providers (NST-16).
 * @throws SessionsConfigurationError for a controller without a guard
 */
export function sessionsControllers(options?: SessionsControllersOptions): Parts {
  const enabled = checkOptions(SessionsControllersOptions, 'controllers', options);
  const { sessions, turns, chat, state } = enabled;
  const parts = [
    ...(sessions === undefined ? [] : [sessionsParts(sessions)]),
    ...(turns === undefined ? [] : [turnsParts(turns)]),
    ...(chat === undefined ? [] : [chatParts(chat)]),
    ...(state === undefined ? [] : [stateParts(state)]),
  ];
  const paths = { provide: SESSIONS_CONTROLLERS, useValue: pathsOf(enabled) };
  if (parts.length === 0) return { imports: [], controllers: [], providers: [paths] };
  return {
    imports: [EarlyErrorsModule, ...parts.flatMap(({ imports }) => imports)],
    controllers: parts.flatMap(({ controllers }) => controllers),
    providers: [paths, ControllersExceptionFilter, ...parts.flatMap(({ providers }) => providers)],
  };
}

/** Returns the name and path of each controller, without the application's global prefix: `chat at /chat`. */
function pathsOf({ sessions, turns, chat, state }: SessionsControllersOptions): string[] {
  return Object.entries({ sessions, turns, chat, state }).flatMap(([name, options]) =>
    options ? [`${name} at /${options.path ?? name}`] : [],
  );
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
        [TurnService, TurnRunner, SessionStore, Transcript],
        (turns: TurnService, runner: TurnRunner, sessions: SessionStore, transcript: Transcript) =>
          new ClientTurns(turns, runner, sessions, transcript, allowed),
      ),
    ],
  };
}

function chatParts(given: ChatControllerOptions): Parts {
  const options = checkOptions(ChatControllerOptions, 'controllers.chat', given);
  const { protocol = 7, allowClientIds = true, maxStreamsPerPrincipal = 16 } = options;
  const orchestrators = options.orchestrators.map(agentName);
  return {
    imports: options.imports ?? [],
    controllers: [chatController(options)],
    providers: [
      provide(
        ChatStream,
        [TurnService, SESSIONS_ADAPTER],
        (turns: TurnService, { events, turns: ledger }: SessionsAdapter) =>
          new ChatStream(turns, events, ledger, protocol),
      ),
      provide(
        ChatResponses,
        [ChatStream, OpenResponses],
        (stream: ChatStream, responses: OpenResponses) =>
          new ChatResponses(stream, new StreamSlots(maxStreamsPerPrincipal), responses),
      ),
      provide(
        ClientChats,
        [SessionStore, TurnService, ChatStream, Transcript, TurnRunner, SESSIONS_SETTINGS, SESSIONS_ADAPTER],
        (
          sessions: SessionStore,
          turns: TurnService,
          stream: ChatStream,
          transcript: Transcript,
          runner: TurnRunner,
          { turns: { maxInputBytes } }: SessionsSettings,
          { conversations }: SessionsAdapter,
        ) =>
          new ClientChats(
            new ChatSessions(sessions, allowClientIds),
            new ChatTurns(turns, stream, orchestrators, maxInputBytes, conversations),
            transcript,
            runner,
            orchestrators,
          ),
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
