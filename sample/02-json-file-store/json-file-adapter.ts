import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { adapterOverTables } from 'nestjs-agent-sessions/adapter';
import { FileLock } from './file-lock.js';
import { Journal } from './journal.js';
import { JsonFileTables } from './json-file-tables.js';

export interface JsonFileOptions {
  readonly file: string;
  /** Returns the time in milliseconds since 1970, for tests that control the time. Default: `Date.now`. */
  readonly clock?: () => number;
}

/** Creates a store with all data in memory and each commit as a line of one file, for one process at a time. */
export function jsonFileAdapter({ file, clock = Date.now }: JsonFileOptions): SessionsAdapter {
  const tables = new JsonFileTables(new Journal(file), new FileLock(`${file}.lock`), clock);
  return adapterOverTables(tables, {
    init: async () => tables.load(),
    beginWork: async () => tables.startWriting(),
    close: async () => tables.close(),
  });
}
