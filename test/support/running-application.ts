import 'reflect-metadata';
import {
  type DynamicModule,
  type INestApplicationContext,
  type LoggerService,
  Module,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  CheckpointStore,
  getOrchestratorToken,
  memoryAdapter,
  type OrchestratorHandle,
  type OrchestratorRef,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  SessionStore,
  type StepPlan,
  TurnService,
} from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { IS_MATRIX } from './matrix.js';
import { openRecycled } from './recycled-tables.js';
import { SQL_SERVERS } from './servers.js';
import { BEHAVIOUR_STORES, type TestStore } from './stores.js';

export interface ApplicationOptions
  extends SessionsModuleOptions, SessionsModuleStatics, Pick<ModuleMetadata, 'imports' | 'providers'> {
  /** The orchestrators for `forFeature`. */
  readonly orchestrators?: readonly (OrchestratorRef | StepPlan)[];
  readonly logger?: LoggerService;
}

/** A running Nest application without HTTP. */
export interface Application {
  readonly app: INestApplicationContext;
  readonly adapter: SessionsAdapter;
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  readonly checkpoints: CheckpointStore;
  readonly handle: <State = Record<string, unknown>>(orchestrator: OrchestratorRef) => OrchestratorHandle<State>;
  /** Creates a session. @returns its id */
  readonly session: () => Promise<string>;
  readonly close: () => Promise<void>;
}

interface LiveStore {
  readonly name: string;
  readonly open: () => SessionsAdapter;
}

/** {@link BEHAVIOUR_STORES} on the real clock, for tests that wait for leases and retries. */
export const LIVE_STORES: readonly LiveStore[] = BEHAVIOUR_STORES.map(({ name, open }) => {
  if (name === 'memory') return { name, open: () => memoryAdapter() };
  const target = targetOf(name, open);
  return { name, open: () => target().adapter };
});

/**
 * {@link LIVE_STORES}, of which the matrix has only the first. For behaviour that cannot depend on the store, such as routing and reports: it
 * uses the store through ports that the conformance suite tests, in one process, and without killed workers.
 */
export const SAMPLED_STORES = IS_MATRIX ? LIVE_STORES.slice(0, 1) : LIVE_STORES;

/** A store that outlives an application. Each call of the function that `create` returns opens it again. */
export interface LastingStore {
  readonly name: string;
  readonly create: () => () => SessionsAdapter;
}

/** {@link LIVE_STORES} that outlive an application. */
export const LASTING_STORES: readonly LastingStore[] = BEHAVIOUR_STORES.map(lasting);

export function lasting({ name, open }: TestStore): LastingStore {
  if (name !== 'memory') return { name, create: () => connectTo(targetOf(name, open)()) };
  return { name, create: () => sameAdapter(memoryAdapter()) };
}

/**
 * Stores that several applications use at the same time. In `npm test`, applications of this process share a store in memory, because the
 * {@link LASTING_STORES} without a server are for one process.
 */
export const COMMON_STORES: readonly LastingStore[] = IS_MATRIX
  ? LASTING_STORES
  : [{ name: 'shared memory', create: () => sameAdapter({ ...memoryAdapter(), shared: true }) }];

function sameAdapter(adapter: SessionsAdapter): () => SessionsAdapter {
  return () => adapter;
}

function targetOf(name: string, open: () => ConformanceTarget): () => ConformanceTarget {
  const server = SQL_SERVERS.find((each) => each.name === name);
  return server ? () => openRecycled(server) : open;
}

/** @returns a function that opens the store again on each call */
function connectTo({ connect }: ConformanceTarget): () => SessionsAdapter {
  if (!connect) throw new Error('This store supports only one process.');
  return () => connect() as SessionsAdapter;
}

const running = new Set<Application>();

/**
 * Starts an application, which is closed after the test at the latest. It polls for lanes with lost notifications
 * every 100 ms, and its shutdown does not wait long for running turns.
 */
export async function startApplication(options: ApplicationOptions = {}): Promise<Application> {
  const { orchestrators = [], imports = [], providers = [], logger, turns, ...rest } = options;
  const app = await NestFactory.createApplicationContext(
    root({
      imports: [
        SessionsModule.forRoot({ sweep: false, turns: { reconcileMs: 100, shutdownGraceMs: 50, ...turns }, ...rest }),
        SessionsModule.forFeature(orchestrators),
        ...imports,
      ],
      providers,
    }),
    { logger: logger ?? false, abortOnError: false },
  );
  const sessions = app.get(SessionStore, { strict: false });
  const application: Application = {
    app,
    adapter: app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false }),
    sessions,
    turns: app.get(TurnService, { strict: false }),
    checkpoints: app.get(CheckpointStore, { strict: false }),
    handle: (orchestrator) => app.get(getOrchestratorToken(orchestrator), { strict: false }),
    session: async () => (await sessions.create({ userId: 'ann' })).id,
    close: async () => {
      running.delete(application);
      await app.close();
    },
  };
  running.add(application);
  return application;
}

/** A gate that handlers wait for and a test opens. */
export interface Gate {
  /** Resolves once the gate is open; rejects if the signal is aborted first. */
  readonly pass: (signal?: AbortSignal) => Promise<void>;
  readonly open: () => void;
}

export function gate(): Gate {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { pass: (signal) => (signal ? Promise.race([opened, aborted(signal)]) : opened), open };
}

/** Rejects with the signal's reason once it is aborted. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason as Error);
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** Returns the error of a rejected promise. @throws if it resolves, or rejects with another type */
export async function rejection<E extends Error>(
  promise: Promise<unknown>,
  type: abstract new (...args: never[]) => E,
  code?: string,
): Promise<E> {
  const outcome = await promise.then(
    (value: unknown) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!('error' in outcome))
    throw new Error(`Expected a rejection with ${type.name}. Resolved with: ${JSON.stringify(outcome.value)}.`);
  expect(outcome.error).toBeInstanceOf(type);
  if (code !== undefined) expect(outcome.error).toMatchObject({ code });
  return outcome.error as E;
}

function root(metadata: ModuleMetadata): DynamicModule {
  @Module({})
  class ApplicationModule {}
  return { module: ApplicationModule, ...metadata };
}

afterEach(async () => {
  await Promise.all([...running].map((application) => application.close()));
});
