import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type Population } from './population.js';

/** Where stores of one kind are made: a server, or a folder of files. */
export interface StoreServer {
  /** What it runs on, for the report. */
  readonly version: string;
  /** The URL of a server, the path of a folder. */
  readonly address: string;
  /** Makes a store of that many sessions, and opens it. Left out: nothing is measured there that needs one. */
  open?(population: Population): Promise<OpenStore>;
  close(): Promise<void>;
}

export interface OpenStore {
  readonly adapter: SessionsAdapter;
  /** What a slice of work cost the store in bytes and the like. */
  readonly meter: Meter;
  /** Lets the store do now what it would do in the background: so that it does not do it while something is measured. */
  tidy(): Promise<void>;
  close(): Promise<void>;
}

/** Counts what the store reads and writes. */
export interface Meter {
  /** Runs work and says what it cost, without what it takes to ask. */
  measure(work: () => Promise<void>): Promise<Readonly<Record<string, number>>>;
}
