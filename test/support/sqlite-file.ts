import Database from 'better-sqlite3';
import { corePorts } from '../../lib/store/core/core-ports.js';
import { SqliteDatabase } from '../../lib/store/sqlite/sqlite-database.js';
import { sqliteAdapter } from './stores.js';

/** The store's ports over a connection that the test can inspect. */
export interface OpenFile {
  readonly ports: ReturnType<typeof corePorts>;
  readonly connection: Database.Database;
  /** All executed statements in order. */
  readonly ran: string[];
  close(): Promise<void>;
}

/** Creates the tables, and opens the file like the adapter. */
export async function openFile(file: string): Promise<OpenFile> {
  await makeTables(file);
  const ran: string[] = [];
  const connection = new Database(file, { timeout: 10, verbose: (statement) => ran.push(String(statement)) });
  const database = new SqliteDatabase(connection, 'agent_', 5000);
  return { ports: corePorts(database), connection, ran, close: () => database.close() };
}

export async function makeTables(file: string): Promise<void> {
  const adapter = sqliteAdapter(file);
  await adapter.init?.();
  await adapter.close?.();
}
