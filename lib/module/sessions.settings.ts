import { checkOptions, shown } from '../common/check-options.js';
import { mintId } from '../common/ids.js';
import { type LogDetails } from '../common/log-details.js';
import { SECONDS_RULE, toMs, toSeconds } from '../common/seconds.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type TokenCounter } from '../conversation/token-counter.js';
import { type SweepSettings, sweepSettings } from '../maintenance/sweep.settings.js';
import { OrchestrationOptions } from '../orchestration/orchestration.options.js';
import { orchestrationSettings, type OrchestrationSettings } from '../orchestration/orchestration.settings.js';
import { InProcessQueue } from '../queue/in-process/in-process-queue.js';
import { type SessionStoreSettings } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { LoggingOptions } from './logging.options.js';
import { moduleMessages } from './module.messages.js';
import { SessionsModuleOptions } from './sessions.options.js';
import { StateOptions } from '../state/state.options.js';
import { stateSettings, type StateSettings } from '../state/state.settings.js';
import { memoryAdapter } from '../store/memory/memory-adapter.js';
import { signedInUser, type PrincipalResolver } from '../transport/principal.js';
import { TurnsOptions } from '../turn/turn.options.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { turnSettings, type TurnSettings } from '../turn/turn.settings.js';

/** Options of `forRoot` that are checked elsewhere; see SessionsModuleStatics. */
const STATICS = ['isGlobal', 'role', 'controllers'];

/** The options with all defaults applied. */
export interface SessionsSettings {
  readonly adapter: SessionsAdapter;
  /** True if no adapter was set. */
  readonly adapterByDefault: boolean;
  /** The maximum number of attempts to open the store at the start, and the pause between two of them. */
  readonly storeAttempts: { readonly count: number; readonly delayMs: number };
  readonly sweep: SweepSettings;
  readonly turns: TurnSettings;
  readonly queue: TurnQueue;
  /** True if the queue is the in-process default. */
  readonly queueByDefault: boolean;
  readonly sessions: SessionStoreSettings;
  readonly orchestration: OrchestrationSettings;
  readonly state: StateSettings;
  readonly principal: PrincipalResolver;
  readonly telemetry: boolean;
  /** The details that logs show. */
  readonly logging: Partial<LogDetails>;
  /** `null`: the default counter, which is loaded when needed. */
  readonly tokenCounter: TokenCounter | null;
}

/**
 * Validates the options and applies the defaults.
 * @throws SessionsConfigurationError with the option, its value and the allowed values (NST-03)
 */
export function resolveOptions(
  options: SessionsModuleOptions = {},
  env: NodeJS.ProcessEnv = process.env,
): SessionsSettings {
  const given = checkOptions(SessionsModuleOptions, '', options, STATICS);
  if (Object.hasOwn(given, 'adapter') && given.adapter === undefined) throw undefinedAdapter();
  const generateId = given.generateId ?? mintId;
  const maxLifetimeMs = toMs(given.maxLifetimeSeconds);
  const turns = checkOptions(TurnsOptions, 'turns', given.turns);
  if (turns.concurrency !== undefined && turns.queue?.concurrency !== undefined) {
    throw new SessionsConfigurationError(moduleMessages.concurrencyOfQueue(turns.concurrency));
  }
  const sessionTtlMs = ttlSeconds(given.ttlSeconds, env, 3600) * 1000;
  const state = stateSettings(checkOptions(StateOptions, 'state', given.state));
  const { logsConversations } = state;
  const turn = turnSettings(turns, {
    sessionTtlMs,
    maxSessionLifetimeMs: maxLifetimeMs,
    logsConversations,
    generateId,
  });
  const states = checkOptions(OrchestrationOptions, 'orchestration', given.orchestration);
  const orchestration = orchestrationSettings(states.namespace, states, (otherwise) =>
    ttlSeconds(undefined, env, otherwise),
  );
  const sweep = sweepSettings(given.sweep, turn.idempotencyTtlMs, evictedDocuments(orchestration, states.cleanup));
  const { expireAfterMs } = sweep;
  return {
    adapter: given.adapter ?? memoryAdapter(),
    adapterByDefault: given.adapter === undefined,
    storeAttempts: { count: given.retryAttempts ?? 10, delayMs: given.retryDelayMs ?? 3000 },
    sessions: {
      defaultTtlMs: sessionTtlMs,
      ...(expireAfterMs === undefined ? {} : { expireAfterMs }),
      ...(maxLifetimeMs === undefined ? {} : { maxLifetimeMs }),
      surfacePolicy: given.surfacePolicy ?? 'move',
      maxSurfacesPerSession: given.maxSurfacesPerSession ?? 16,
      onSurfaceLimit: given.onSurfaceLimit ?? 'detach',
      maxMetadataBytes: given.maxMetadataBytes ?? 65_536,
      generateId,
    },
    orchestration,
    sweep,
    queue: turns.queue ?? new InProcessQueue(turns.concurrency ?? 32),
    queueByDefault: turns.queue === undefined,
    turns: turn,
    state,
    principal: given.principal ?? signedInUser,
    telemetry: given.telemetry ?? true,
    logging: checkOptions(LoggingOptions, 'logging', given.logging),
    tokenCounter: given.tokenCounter ?? null,
  };
}

/** An explicit `undefined` is rejected: a missing environment variable would silently select the memory store (DAY-15). */
function undefinedAdapter(): SessionsConfigurationError {
  return new SessionsConfigurationError(moduleMessages.undefinedAdapter());
}

/** Returns which orchestration states the sweep removes before they expire. */
function evictedDocuments(
  { namespace, maxSessions }: OrchestrationSettings,
  cleanup = true,
): SweepSettings['maxDocuments'] {
  return cleanup && maxSessions !== undefined ? [{ namespace, keep: maxSessions }] : [];
}

function ttlSeconds(given: unknown, { SESSION_TTL_SECONDS: text }: NodeJS.ProcessEnv, otherwise: number): number {
  const seconds = toSeconds(given ?? text ?? otherwise);
  if (seconds !== null) return seconds;
  throw new SessionsConfigurationError(
    `SessionsModule: The environment variable SESSION_TTL_SECONDS ${SECONDS_RULE} Received: ${shown(text)}.`,
  );
}
