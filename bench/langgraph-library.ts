import { createRequire } from 'node:module';
import { type Database } from 'better-sqlite3';
import { BENCH } from './chart-library.js';

/** The parts of LangGraph's checkpointers that the benchmarks use. */
export interface CheckpointSaver {
  getTuple(config: SaverConfig): Promise<SavedTuple | undefined>;
  put(
    config: SaverConfig,
    checkpoint: SavedCheckpoint,
    metadata: { readonly source: 'loop'; readonly step: number; readonly parents: object },
    newVersions: Readonly<Record<string, number>>,
  ): Promise<SaverConfig>;
}

export interface SaverConfig {
  readonly configurable: {
    readonly thread_id: string;
    readonly checkpoint_ns: string;
    readonly checkpoint_id?: string;
  };
}

export interface SavedTuple {
  readonly config: SaverConfig;
  readonly checkpoint: SavedCheckpoint;
}

export interface SavedCheckpoint {
  readonly v: number;
  readonly id: string;
  readonly ts: string;
  readonly channel_values: Readonly<Record<string, unknown>>;
  readonly channel_versions: Readonly<Record<string, number>>;
  readonly versions_seen: object;
}

/** @param pool a pool of `pg` */
export interface PostgresSaverLibrary {
  readonly PostgresSaver: new (pool: object) => CheckpointSaver & { setup(): Promise<void> };
}

export interface SqliteSaverLibrary {
  readonly SqliteSaver: { fromConnString(file: string): CheckpointSaver & { readonly db: Database } };
}

export interface PQueueLibrary {
  readonly default: new (options: { concurrency: number }) => { add<T>(work: () => Promise<T>): Promise<T> };
}

interface CheckpointLibrary {
  /** Returns an id that sorts by time, then by number. */
  uuid6(number: number): string;
}

/** Loads the checkpointers, which are installed in `bench/` only. */
export function loadPeer<Library>(name: string): Library {
  return createRequire(BENCH)(name) as Library;
}

/** The configuration of a session, in the default namespace. */
export function threadOf(sessionId: string): SaverConfig {
  return { configurable: { thread_id: sessionId, checkpoint_ns: '' } };
}

/** Stores the next state of a session, like a graph with one channel. */
export async function putState(
  saver: CheckpointSaver,
  sessionId: string,
  before: SavedTuple | undefined,
  turn: number,
  state: unknown,
): Promise<void> {
  const version = turn + 1;
  const checkpoint: SavedCheckpoint = {
    v: 4,
    id: loadPeer<CheckpointLibrary>('@langchain/langgraph-checkpoint').uuid6(turn),
    ts: new Date().toISOString(),
    channel_values: { state },
    channel_versions: { state: version },
    versions_seen: {},
  };
  const metadata = { source: 'loop', step: turn, parents: {} } as const;
  await saver.put(before?.config ?? threadOf(sessionId), checkpoint, metadata, { state: version });
}
