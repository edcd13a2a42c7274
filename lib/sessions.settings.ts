import { inspect } from 'node:util';
import { validateInput } from './common/check-input.js';
import { mintId } from './common/ids.js';
import { isPlainObject } from './common/json.js';
import { type TokenCounter } from './conversation/token-counter.js';
import { SECONDS_RULE, toSeconds } from './common/seconds.js';
import { SessionsConfigurationError } from './common/sessions.error.js';
import { type PrincipalResolver, signedInUser } from './transport/principal.js';
import { type SweepSettings } from './maintenance/session-sweeper.service.js';
import { orchestrationSettings, type OrchestrationSettings } from './orchestration/orchestration.settings.js';
import { InProcessQueue } from './queue/in-process/in-process-queue.js';
import { type SessionStoreSettings } from './session/session-store.service.js';
import { type SessionsAdapter } from './sessions.adapter.js';
import {
  BackoffOptions,
  OrchestrationOptions,
  RetryOptions,
  SessionsModuleOptions,
  SweepOptions,
  TurnEventsOptions,
  TurnsOptions,
} from './sessions.options.js';
import { StateOptions, stateSettings, type StateSettings } from './state/state.settings.js';
import { memoryAdapter } from './store/memory/memory-adapter.js';
import { type TurnQueue } from './turn/turn-queue.js';
import { type TurnEventSettings, type TurnSettings } from './turn/turn.settings.js';

/** The options with every default filled in. */
export interface SessionsSettings {
  readonly adapter: SessionsAdapter;
  /** True when no adapter was given. */
  readonly adapterByDefault: boolean;
  readonly sweep: SweepSettings;
  readonly turns: TurnSettings;
  readonly queue: TurnQueue;
  /** True when the queue is the one in this process. */
  readonly queueByDefault: boolean;
  readonly sessions: SessionStoreSettings;
  readonly orchestration: OrchestrationSettings;
  readonly state: StateSettings;
  readonly principal: PrincipalResolver;
  readonly telemetry: boolean;
  /** `null`: the default one, loaded when it is needed. */
  readonly tokenCounter: TokenCounter | null;
}

/**
 * Checks the options and fills in the defaults.
 * @throws SessionsConfigurationError naming the option, its value and what is allowed (NST-03)
 */
export function resolveOptions(
  options: SessionsModuleOptions = {},
  env: NodeJS.ProcessEnv = process.env,
): SessionsSettings {
  const given = check(SessionsModuleOptions, '', options);
  const turns = check(TurnsOptions, 'turns', given.turns);
  const retry = check(RetryOptions, 'turns.retry', turns.retry);
  const backoff = check(BackoffOptions, 'turns.retry.backoff', retry.backoff);
  const generateId = given.generateId ?? mintId;
  const maxLifetimeMs = toMs(given.maxLifetimeSeconds);
  const { namespace, cleanup = true, ...states } = check(OrchestrationOptions, 'orchestration', given.orchestration);
  const orchestration = orchestrationSettings(namespace, states, (otherwise) => ttlSeconds(undefined, env, otherwise));
  const idempotencyTtlMs = (turns.idempotencySeconds ?? 86_400) * 1000;
  return {
    adapter: given.adapter ?? memoryAdapter(),
    adapterByDefault: given.adapter === undefined,
    sessions: {
      defaultTtlMs: ttlSeconds(given.ttlSeconds, env, 3600) * 1000,
      ...(maxLifetimeMs === undefined ? {} : { maxLifetimeMs }),
      surfacePolicy: given.surfacePolicy ?? 'move',
      maxSurfacesPerSession: given.maxSurfacesPerSession ?? 16,
      maxMetadataBytes: given.maxMetadataBytes ?? 65_536,
      generateId,
    },
    orchestration,
    sweep: sweepOf(given.sweep, idempotencyTtlMs, orchestration, cleanup),
    queue: turns.queue ?? new InProcessQueue(turns.concurrency ?? 32),
    queueByDefault: turns.queue === undefined,
    turns: {
      whenBusy: turns.whenBusy ?? 'enqueue',
      maxQueuedPerSession: turns.maxQueuedPerSession ?? 100,
      maxInputBytes: turns.maxInputBytes ?? 262_144,
      leaseMs: turns.leaseMs ?? 10_000,
      reconcileMs: turns.reconcileMs ?? 1000,
      idempotencyTtlMs,
      shutdownGraceMs: turns.shutdownGraceMs ?? 10_000,
      timeoutMs: turns.timeoutMs === false ? undefined : (turns.timeoutMs ?? 900_000),
      maxSessionLifetimeMs: maxLifetimeMs,
      maxTurnsPerVisit: 16,
      retry: {
        attempts: retry.attempts ?? 3,
        backoff: {
          type: backoff.type ?? 'exponential',
          delayMs: backoff.delayMs ?? 500,
          maxDelayMs: backoff.maxDelayMs ?? 60_000,
        },
      },
      events: eventsOf(turns.events),
      generateId,
    },
    state: stateSettings(check(StateOptions, 'state', given.state)),
    principal: given.principal ?? signedInUser,
    telemetry: given.telemetry ?? true,
    tokenCounter: given.tokenCounter ?? null,
  };
}

/** Left out is fine, `null` is not. @throws SessionsConfigurationError */
export function check<T extends object>(type: new () => T, path: string, options: unknown = {}): T {
  const checked = validateInput(type, options, path);
  if ('value' in checked) return checked.value;
  const { path: option, value, rule } = checked.problem;
  const name = option === '' ? 'The options' : `The option ${option}`;
  throw new SessionsConfigurationError(`SessionsModule: ${name} ${rule} It is ${show(value)}.`);
}

function eventsOf(events: false | TurnEventsOptions | undefined): TurnEventSettings | null {
  if (events === false) return null;
  const { ttlSeconds = 3600, batchMs = 25, batchBytes = 4096 } = check(TurnEventsOptions, 'turns.events', events);
  return { ttlMs: ttlSeconds * 1000, batchMs, batchBytes };
}

function sweepOf(
  sweep: false | SweepOptions | undefined,
  idempotencyTtlMs: number,
  { namespace, maxSessions }: OrchestrationSettings,
  cleanup: boolean,
): SweepSettings {
  const {
    enabled = true,
    cron = '*/5 * * * *',
    maxPerRun = 10_000,
    expireAfterSeconds,
    purgeAfterSeconds,
    purgeTurnsAfterSeconds = 604_800,
  } = check(SweepOptions, 'sweep', sweep === false ? { enabled: false } : sweep);
  return {
    cron: enabled ? cron : null,
    maxPerRun,
    expireAfterMs: toMs(expireAfterSeconds),
    purgeAfterMs: toMs(purgeAfterSeconds),
    maxDocuments: cleanup && maxSessions !== undefined ? [{ namespace, keep: maxSessions }] : [],
    purgeTurnsAfterMs:
      purgeTurnsAfterSeconds === false ? undefined : Math.max(purgeTurnsAfterSeconds * 1000, idempotencyTtlMs),
  };
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function ttlSeconds(given: unknown, { SESSION_TTL_SECONDS: text }: NodeJS.ProcessEnv, otherwise: number): number {
  const seconds = toSeconds(given ?? text ?? otherwise);
  if (seconds !== null) return seconds;
  throw new SessionsConfigurationError(
    `SessionsModule: The environment variable SESSION_TTL_SECONDS ${SECONDS_RULE} It is ${show(text)}.`,
  );
}

function show(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  // Instances may hold what must not be logged, a connection's password for one.
  if (typeof value === 'object' && value !== null && !isPlainObject(value) && !Array.isArray(value)) {
    return `an instance of ${value.constructor.name}`;
  }
  // Not JSON, which makes null of NaN and fails on bigints and cycles.
  return inspect(value, { depth: 1, breakLength: Infinity, maxStringLength: 200, maxArrayLength: 20 });
}
