import { cpus, release, totalmem, type } from 'node:os';

/** The environment of the results. */
export interface Environment {
  readonly machine: string;
  readonly node: string;
  /** The store and its configuration. */
  readonly store: string;
  /** The day, as ISO-8601. */
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
