import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { fillSqlite } from './fill-sqlite.js';
import { type Population } from './population.js';
import { type Meter, type OpenStore, type StoreServer } from './store-server.js';

/** Files that are deleted at the end. */
export async function openSqliteFolder(): Promise<StoreServer> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  return {
    version: `SQLite ${sqliteVersion()}, synchronous = NORMAL (PRF-02: FULL)`,
    address: folder,
    open: (population) => openFile(join(folder, `${population.count}.db`), population),
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function openFile(file: string, population: Population): Promise<OpenStore> {
  const open = async () => {
    const dataSource = { type: 'better-sqlite3', database: file } as const;
    // The varying speed of the disk would hide growth.
    const adapter = typeormAdapter({ dataSource, sqlite: { synchronous: 'NORMAL' } });
    await adapter.init?.();
    return adapter;
  };
  if (population.count > 0) {
    const empty = await open();
    await empty.close?.();
    fillSqlite(file, population);
  }
  const adapter = await open();
  const beside = new Database(file);
  return {
    adapter,
    meter: new SqliteMeter(file, beside),
    tidy: async () => void beside.pragma('wal_checkpoint(TRUNCATE)'),
    close: async () => {
      beside.close();
      await adapter.close?.();
    },
  };
}

/** Counts the bytes that the process reads from files, which were not in the page cache, and those that it writes to the log. */
class SqliteMeter implements Meter {
  constructor(
    private readonly file: string,
    private readonly beside: Database.Database,
  ) {}

  async measure(work: () => Promise<void>): Promise<Readonly<Record<string, number>>> {
    // The log grows from here on.
    this.beside.pragma('wal_checkpoint(TRUNCATE)');
    const before = bytesRead();
    await work();
    return { 'bytes read': Math.max(0, bytesRead() - before), 'bytes written': statSync(`${this.file}-wal`).size };
  }
}

/** Returns 0 where the system does not report it. */
function bytesRead(): number {
  try {
    return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

function sqliteVersion(): string {
  const db = new Database(':memory:');
  const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  db.close();
  return version;
}
