import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type SessionsControllersOptions } from '../http/controllers/controllers.options.js';
import { type OrchestratorRef } from '../orchestration/orchestrator-ref.js';
import { type SessionsModuleOptions, type SessionsModuleStatics } from '../module/sessions.options.js';
import { type TurnsOptions } from '../turn/turn.options.js';
import { memoryAdapter } from '../store/memory/memory-adapter.js';
import { TestClock } from './test-clock.js';
import { TestQueue } from './test-queue.js';

/** Options of `SessionsTestingModule.create`: those of a Nest testing module and of `SessionsModule.forRoot`. */
export interface SessionsTestingOptions
  extends
    Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'>,
    Omit<SessionsModuleOptions, 'turns'>,
    Omit<SessionsModuleStatics, 'controllers'> {
  /**
   * The orchestrators: classes, which may inject the providers, and definitions. A definition replaces an
   * orchestrator of the same name in `imports`. Default: those of `imports`.
   */
  readonly orchestrators?: readonly OrchestratorRef[];
  /** The `controllers` option of `forRoot`; `controllers` here are those of the test module. Default: none. */
  readonly sessionsControllers?: SessionsControllersOptions;
  /** As in `forRoot`, but retries have no delay unless `retry.backoff` is set, and `shutdownGraceMs` defaults to 0. */
  readonly turns?: Omit<TurnsOptions, 'queue'>;
  /** The clock that the test moves: that of `adapter`, or of another application. Default: a new clock. */
  readonly clock?: TestClock;
  /** `true`, or a function that creates the Nest application; see `SessionsTestingModule.http`. Default: none. */
  readonly http?: boolean | ((module: TestingModule) => INestApplication);
  /**
   * Overrides providers of `imports`, for example `(builder) => builder.overrideGuard(AuthGuard).useValue(ann)`.
   * Default: none.
   */
  readonly override?: (builder: TestingModuleBuilder) => unknown;
}

/** The resulting options of `forRoot`, and the clock with its queue. */
export interface TestingSettings {
  readonly root: SessionsModuleOptions & SessionsModuleStatics;
  /** `null` if the store runs in real time. */
  readonly time: { readonly clock: TestClock; readonly queue: TestQueue } | null;
}

/** @throws SessionsConfigurationError for a `turns.queue` option, and for a `clock` that is not a TestClock */
export function resolveTestingOptions(
  options: SessionsModuleOptions & Pick<SessionsTestingOptions, 'clock' | 'sessionsControllers'>,
): TestingSettings {
  const { clock: given, sessionsControllers, adapter, sweep, turns, ...rest } = options;
  if (turns?.queue !== undefined) {
    throw new SessionsConfigurationError('SessionsTestingModule uses its own queue. Remove the `turns.queue` option.');
  }
  if (given !== undefined && !(given instanceof TestClock)) {
    throw new SessionsConfigurationError('SessionsTestingModule: The `clock` option must be a TestClock.');
  }
  // An adapter without the clock option keeps its own clock.
  const clock = given ?? (adapter === undefined ? new TestClock() : null);
  const time = clock && { clock, queue: new TestQueue(clock.now, turns?.concurrency ?? 32) };
  const root = {
    isGlobal: true,
    ...rest,
    ...(sessionsControllers === undefined ? {} : { controllers: sessionsControllers }),
    adapter: adapter ?? memoryAdapter({ ...(clock ? { clock: clock.now } : {}) }),
    sweep: withDefaults({ enabled: false }, sweep === false ? undefined : sweep),
    turns: turnsOf(turns, time?.queue),
  };
  return { root, time };
}

function turnsOf(turns: TurnsOptions | undefined, queue: TestQueue | undefined): TurnsOptions | undefined {
  const given: TurnsOptions | undefined = withDefaults({ shutdownGraceMs: 0 }, turns);
  if (typeof given !== 'object' || given === null) return given;
  return { ...given, retry: withDefaults({ backoff: { delayMs: 0 } }, given.retry), ...(queue ? { queue } : {}) };
}

/** Applies defaults to an object. Other values are returned unchanged, and forRoot rejects them. */
function withDefaults<T>(defaults: T, given: T | undefined): T {
  if (given === undefined) return defaults;
  return isPlainObject(given) ? { ...defaults, ...(given as T) } : given;
}
