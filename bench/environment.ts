import { cpus, release, totalmem, type } from 'node:os';

/** What results depend on. */
export interface Environment {
  readonly machine: string;
  readonly node: string;
  /** The store and how it was set up. */
  readonly store: string;
  /** ISO-8601, of the day. */
  readonly day: string;
}

export function environmentOf(store: string): Environment {
  const processors = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return {
    machine: `${processors.length} × ${processors[0].model.trim()}, ${memory} GB, ${type()} ${release()}`,
    node: process.version,
    store,
    day: new Date().toISOString().slice(0, 10),
  };
}
