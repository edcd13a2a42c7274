import { inspect } from 'node:util';
import { type FactoryProvider, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { CronTime } from 'cron';
import { Must, MustBeInteger, Optional, validateInput } from './common/check-input.js';
import { type IdGenerator, mintId } from './common/ids.js';
import { isPlainObject } from './common/json.js';
import { SessionsConfigurationError } from './common/sessions.error.js';
import { type PrincipalResolver, requestUser } from './http/principal.js';
import { type SweepSettings } from './maintenance/session-sweeper.service.js';
import { InProcessQueue } from './queue/in-process/in-process-queue.js';
import { type SessionsAdapter } from './sessions.adapter.js';
import { SURFACE_POLICIES, type SurfacePolicy } from './session/session.js';
import { type SessionStoreSettings } from './session/session-store.service.js';
import { memoryAdapter } from './store/memory/memory-adapter.js';
import { type TurnQueue } from './turn/turn-queue.js';
import { type TurnSettings } from './turn/turn.settings.js';
import { WHEN_BUSY, type WhenBusy } from './turn/turn.js';

const MAX_MS = 2_147_483_647;
const MAX_SECONDS = 3_153_600_000;
const SECONDS_RULE = `must be an integer from 1 to ${MAX_SECONDS}.`;
const isMethod = (value: unknown): boolean => typeof value === 'function';

/** When idle sessions are suspended, expire, and are deleted. */
export class SweepOptions {
  /** A cron expression, five or six fields. Default: every five minutes. */
  @Optional()
  @Must(isCron, 'must be a cron expression, for example */5 * * * *.')
  cron?: string;

  /** Default true. */
  @Optional()
  @Must((value) => typeof value === 'boolean', 'must be a boolean.')
  enabled?: boolean;

  /** Idle seconds after which suspended and never used sessions expire. Default: never. */
  @Optional()
  @MustBeInteger(1, 3_153_600_000)
  expireAfterSeconds?: number;

  /** Seconds after which expired sessions are deleted with everything they have. Default: never. */
  @Optional()
  @MustBeInteger(1, 3_153_600_000)
  purgeAfterSeconds?: number;

  /** At most about this many sessions of each kind a run; the next run goes on. Default 10,000. */
  @Optional()
  @MustBeInteger(1, 10_000_000)
  maxPerRun?: number;
}

/** Pauses between the attempts of a turn. */
export class BackoffOptions {
  /** `exponential` (default) doubles with each failure. */
  @Optional()
  @Must((value) => value === 'fixed' || value === 'exponential', 'must be fixed or exponential.')
  type?: 'fixed' | 'exponential';

  /** Milliseconds before the second attempt. Default 500. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  delayMs?: number;

  /** Exponential delays grow up to this. Default 60,000. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxDelayMs?: number;
}

export class RetryOptions {
  /** Attempts of a turn in all. Default 3. */
  @Optional()
  @MustBeInteger(1, 1000)
  attempts?: number;

  @Allow()
  backoff?: BackoffOptions;
}

/** How turns are queued, run and tried again. */
export class TurnsOptions {
  /** What says that a session has work. Default: a queue in this process. */
  @Optional()
  @Must(isTurnQueue, 'must be a TurnQueue with ring, process, pause, resume and close.')
  queue?: TurnQueue;

  /** Sessions whose turns this process runs at once, with the default queue. Default 32. */
  @Optional()
  @MustBeInteger(1, 10_000)
  concurrency?: number;

  /** What to do when a message arrives while the session is busy. Default `enqueue`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;

  /** Queued turns that a session may have. Default 100. */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxQueuedPerSession?: number;

  /** Of one input as JSON. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxInputBytes?: number;

  @Allow()
  retry?: RetryOptions;

  /** Milliseconds for which a worker holds a turn without renewing; a lost worker's lane waits this long. Default 10,000. */
  @Optional()
  @MustBeInteger(100, 3_600_000)
  leaseMs?: number;

  /** How often lanes that need attention are looked for, in milliseconds. Default 1,000. */
  @Optional()
  @MustBeInteger(10, 3_600_000)
  reconcileMs?: number;

  /** Seconds for which an idempotency key is remembered after its turn settled. Default 86,400 (a day). */
  @Optional()
  @MustBeInteger(1, 31_536_000)
  idempotencySeconds?: number;

  /** Milliseconds that running turns get to finish when the application stops. Default 10,000. */
  @Optional()
  @MustBeInteger(0, 3_600_000)
  shutdownGraceMs?: number;
}

/** What `SessionsModule.forRoot` takes. Everything has a default. */
export class SessionsModuleOptions {
  /** The store. Default: `memoryAdapter()`, which forgets everything with the process. */
  @Optional()
  @Must(isSessionsAdapter, 'must be a SessionsAdapter, for example memoryAdapter() or typeormAdapter({ ... }).')
  adapter?: SessionsAdapter;

  /**
   * Idle seconds after which a session is suspended; digits as text too, as they come from an environment. Default: the
   * environment's SESSION_TTL_SECONDS, else 3,600.
   */
  @Optional()
  @Must((value) => toSeconds(value) !== null, SECONDS_RULE)
  ttlSeconds?: number | string;

  /** Seconds after its creation that a session may be used, whatever its activity. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 3_153_600_000)
  maxLifetimeSeconds?: number;

  /** `false` switches all sweeps off. */
  @Allow()
  sweep?: false | SweepOptions;

  @Allow()
  turns?: TurnsOptions;

  /** Who keeps a surface that two sessions of a user want: `move` (default) it, `reject` the second, or `share` it. */
  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  surfacePolicy?: SurfacePolicy;

  /** Surfaces that one session may have attached. Default 16. */
  @Optional()
  @MustBeInteger(1, 1000)
  maxSurfacesPerSession?: number;

  /** Of a session's metadata as JSON. Default 65,536. */
  @Optional()
  @MustBeInteger(2, 16_777_216)
  maxMetadataBytes?: number;

  /** Who a request speaks for. Default: `request.user?.id` and `request.user?.workspaceId`. */
  @Optional()
  @Must(isMethod, 'must be a function of the execution context.')
  principal?: PrincipalResolver;

  /** Makes ids of sessions and turns; at least 128 bits must be unpredictable. Default: 32 random hexadecimal digits. */
  @Optional()
  @Must(isMethod, 'must be a function that returns an id.')
  generateId?: IdGenerator;
}

/** What only the module's definition can decide. */
export interface SessionsModuleStatics {
  /** Makes the services injectable in every module. Default false. */
  readonly isGlobal?: boolean;
}

export interface SessionsOptionsFactory {
  createSessionsOptions(): SessionsModuleOptions | Promise<SessionsModuleOptions>;
}

export interface SessionsModuleAsyncOptions extends SessionsModuleStatics, Pick<ModuleMetadata, 'imports'> {
  readonly useFactory?: FactoryProvider<SessionsModuleOptions>['useFactory'];
  readonly inject?: FactoryProvider['inject'];
  /** A class that is made here. */
  readonly useClass?: Type<SessionsOptionsFactory>;
  /** A provider of the imported modules. */
  readonly useExisting?: Type<SessionsOptionsFactory>;
}

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
  readonly principal: PrincipalResolver;
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
  return {
    adapter: given.adapter ?? memoryAdapter(),
    adapterByDefault: given.adapter === undefined,
    sessions: {
      defaultTtlMs: ttlSeconds(given.ttlSeconds, env) * 1000,
      ...(maxLifetimeMs === undefined ? {} : { maxLifetimeMs }),
      surfacePolicy: given.surfacePolicy ?? 'move',
      maxSurfacesPerSession: given.maxSurfacesPerSession ?? 16,
      maxMetadataBytes: given.maxMetadataBytes ?? 65_536,
      generateId,
    },
    sweep: sweepOf(given.sweep),
    queue: turns.queue ?? new InProcessQueue(turns.concurrency ?? 32),
    queueByDefault: turns.queue === undefined,
    turns: {
      whenBusy: turns.whenBusy ?? 'enqueue',
      maxQueuedPerSession: turns.maxQueuedPerSession ?? 100,
      maxInputBytes: turns.maxInputBytes ?? 262_144,
      leaseMs: turns.leaseMs ?? 10_000,
      reconcileMs: turns.reconcileMs ?? 1000,
      idempotencyTtlMs: (turns.idempotencySeconds ?? 86_400) * 1000,
      shutdownGraceMs: turns.shutdownGraceMs ?? 10_000,
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
      generateId,
    },
    principal: given.principal ?? requestUser,
  };
}

/** Left out is fine, `null` is not. */
function check<T extends object>(type: new () => T, path: string, options: unknown = {}): T {
  const checked = validateInput(type, options, path);
  if ('value' in checked) return checked.value;
  const { path: option, value, rule } = checked.problem;
  const name = option === '' ? 'The options' : `The option ${option}`;
  throw new SessionsConfigurationError(`SessionsModule: ${name} ${rule} It is ${show(value)}.`);
}

function sweepOf(sweep: false | SweepOptions | undefined): SessionsSettings['sweep'] {
  const {
    enabled = true,
    cron = '*/5 * * * *',
    maxPerRun = 10_000,
    expireAfterSeconds,
    purgeAfterSeconds,
  } = check(SweepOptions, 'sweep', sweep === false ? { enabled: false } : sweep);
  return {
    cron: enabled ? cron : null,
    maxPerRun,
    expireAfterMs: toMs(expireAfterSeconds),
    purgeAfterMs: toMs(purgeAfterSeconds),
  };
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function ttlSeconds(given: unknown, { SESSION_TTL_SECONDS: text }: NodeJS.ProcessEnv): number {
  const seconds = toSeconds(given ?? text ?? 3600);
  if (seconds !== null) return seconds;
  throw new SessionsConfigurationError(
    `SessionsModule: The environment variable SESSION_TTL_SECONDS ${SECONDS_RULE} It is ${show(text)}.`,
  );
}

/** A number of seconds, or its digits as text; null for anything else. */
function toSeconds(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return Number.isInteger(seconds) && (seconds as number) >= 1 && (seconds as number) <= MAX_SECONDS
    ? (seconds as number)
    : null;
}

const PORTS: Readonly<Record<string, readonly string[]>> = {
  sessions: ['insert', 'fetchById', 'fetchMany', 'update', 'delete'],
  turns: ['accept', 'claim', 'renew', 'settle', 'retry', 'release', 'cancel', 'get', 'list', 'due', 'saveStep'],
  hints: ['subscribe'],
  checkpoints: ['load', 'append'],
  conversations: ['append', 'window', 'page'],
  state: ['get', 'set'],
  leases: ['acquire', 'renew', 'release'],
};

function isSessionsAdapter(value: unknown): boolean {
  const adapter = value as Record<string, Record<string, unknown> | undefined>;
  if (typeof adapter !== 'object' || adapter === null || !isMethod(adapter.ping)) return false;
  return Object.entries(PORTS).every(([port, methods]) => methods.every((method) => isMethod(adapter[port]?.[method])));
}

function isTurnQueue(value: unknown): boolean {
  const queue = value as Record<string, unknown>;
  return (
    typeof queue === 'object' &&
    queue !== null &&
    ['ring', 'process', 'pause', 'resume', 'close'].every((method) => isMethod(queue[method]))
  );
}

function isCron(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    new CronTime(value);
    return true;
  } catch {
    return false;
  }
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
