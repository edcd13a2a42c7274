import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type Population } from './population.js';

/** A server, or a folder of files, that stores of one kind are created on. */
export interface StoreServer {
  /** The version, for the report. */
  readonly version: string;
  /** The URL of a server, or the path of a folder. */
  readonly address: string;
  /** Creates a store with this number of sessions and opens it. Absent if no benchmark needs it. */
  open?(population: Population): Promise<OpenStore>;
  close(): Promise<void>;
}

export interface OpenStore {
  readonly adapter: SessionsAdapter;
  /** Measures the bytes and other costs of a slice in the store. */
  readonly meter: Meter;
  /** Runs the store's background work now, so that it does not run during a measurement. */
  tidy(): Promise<void>;
  close(): Promise<void>;
}

/** Counts reads and writes of the store. */
export interface Meter {
  /** Runs work and returns its cost, without the cost of counting. */
  measure(work: () => Promise<void>): Promise<Readonly<Record<string, number>>>;
}
