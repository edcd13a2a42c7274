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
import { openRecycled } from './recycled-tables.js';
import { SQL_SERVERS } from './servers.js';
import { STORES } from './stores.js';

export interface ApplicationOptions
  extends SessionsModuleOptions, SessionsModuleStatics, Pick<ModuleMetadata, 'imports' | 'providers'> {
  /** What `forFeature` lists. */
  readonly orchestrators?: readonly (OrchestratorRef | StepPlan)[];
  readonly logger?: LoggerService;
}

/** A Nest application that runs, without HTTP. */
export interface Application {
  readonly app: INestApplicationContext;
  readonly adapter: SessionsAdapter;
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  readonly checkpoints: CheckpointStore;
  readonly handle: <State = Record<string, unknown>>(orchestrator: OrchestratorRef) => OrchestratorHandle<State>;
  /** A new session. @returns its id */
  readonly session: () => Promise<string>;
  readonly close: () => Promise<void>;
}

const [MEMORY, ...CLOCKED_STORES] = STORES.map(({ name, open }) => {
  const server = SQL_SERVERS.find((each) => each.name === name);
  return { name, open: server ? () => openRecycled(server) : open };
});

/** Every store, on the real clock: leases lapse and retries fall due while a test waits for them. */
export const LIVE_STORES: readonly { readonly name: string; readonly open: () => SessionsAdapter }[] = [
  { name: MEMORY.name, open: () => memoryAdapter() },
  ...CLOCKED_STORES.map(({ name, open }) => ({ name, open: () => open().adapter })),
];

/** The same, for tests in which a store outlives an application: what `create` gives opens one store again and again. */
export const LASTING_STORES: readonly { readonly name: string; readonly create: () => () => SessionsAdapter }[] = [
  {
    name: MEMORY.name,
    create: () => {
      const adapter = memoryAdapter();
      return () => adapter;
    },
  },
  ...CLOCKED_STORES.map(({ name, open }) => ({ name, create: () => connectTo(open()) })),
];

/** @returns opens the store once more, each time */
function connectTo({ connect }: ConformanceTarget): () => SessionsAdapter {
  if (!connect) throw new Error('This store lives in one process.');
  return () => connect() as SessionsAdapter;
}

const running = new Set<Application>();

/**
 * Starts an application, which is closed after the test at the latest. It looks for forgotten lanes
 * every 100 ms, and does not wait long for what a test left running.
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

/** Something that handlers wait for and a test opens. */
export interface Gate {
  /** Resolves once the gate is open; rejects when the signal is aborted first. */
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

/** The error that a promise rejects with. @throws when it resolves, or rejects with something else */
export async function rejection<E extends Error>(
  promise: Promise<unknown>,
  type: abstract new (...args: never[]) => E,
): Promise<E> {
  const outcome = await promise.then(
    (value: unknown) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!('error' in outcome)) throw new Error(`Resolved with ${JSON.stringify(outcome.value)}, not ${type.name}.`);
  expect(outcome.error).toBeInstanceOf(type);
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
