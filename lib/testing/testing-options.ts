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

/** What `SessionsTestingModule.create` takes: a Nest test module, and the options of `SessionsModule.forRoot`. */
export interface SessionsTestingOptions
  extends
    Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'>,
    Omit<SessionsModuleOptions, 'turns'>,
    Omit<SessionsModuleStatics, 'controllers'> {
  /**
   * The orchestrators: classes, which may inject the given providers, and definitions. A definition takes the place of an
   * orchestrator of the same name that `imports` bring. Default: those of `imports`.
   */
  readonly orchestrators?: readonly OrchestratorRef[];
  /** As `controllers` of `forRoot`: those of this package. The test module's own are `controllers`. Default: none. */
  readonly sessionsControllers?: SessionsControllersOptions;
  /** As in `forRoot`. By default retries are not put off unless `retry.backoff` is given, and `shutdownGraceMs` is 0. */
  readonly turns?: Omit<TurnsOptions, 'queue'>;
  /** The clock that the test moves. Default: a new one. Give the clock that `adapter` reads, or the clock of another application. */
  readonly clock?: TestClock;
  /** `true`, or a function that makes the Nest application: see `SessionsTestingModule.http`. Default: none. */
  readonly http?: boolean | ((module: TestingModule) => INestApplication);
  /** Replaces what `imports` bring, for example `(builder) => builder.overrideGuard(AuthGuard).useValue(ann)`. Default: nothing. */
  readonly override?: (builder: TestingModuleBuilder) => unknown;
}

/** The options of `forRoot` that follow, and what moves time. */
export interface TestingSettings {
  readonly root: SessionsModuleOptions & SessionsModuleStatics;
  /** `null`: the store runs by the real time. */
  readonly time: { readonly clock: TestClock; readonly queue: TestQueue } | null;
}

/** @throws SessionsConfigurationError for a queue of the test's own, and for a clock that is no TestClock */
export function resolveTestingOptions(
  options: SessionsModuleOptions & Pick<SessionsTestingOptions, 'clock' | 'sessionsControllers'>,
): TestingSettings {
  const { clock: given, sessionsControllers, adapter, sweep, turns, ...rest } = options;
  if (turns?.queue !== undefined) {
    throw new SessionsConfigurationError('SessionsTestingModule has a queue of its own; leave out turns.queue.');
  }
  if (given !== undefined && !(given instanceof TestClock)) {
    throw new SessionsConfigurationError('SessionsTestingModule: The option clock must be a TestClock.');
  }
  // A store that was given without a clock has one of its own.
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

/** What is no object is passed on: forRoot says what is wrong with it. */
function withDefaults<T>(defaults: T, given: T | undefined): T {
  if (given === undefined) return defaults;
  return isPlainObject(given) ? { ...defaults, ...(given as T) } : given;
}
