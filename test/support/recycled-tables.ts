import { randomBytes } from 'node:crypto';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { columnName, TABLES } from '../../lib/store/sql/columns.js';
import { adapterOf } from './connections.js';
import { type SqlServer } from './servers.js';
import { optionsOn } from './stores.js';

/**
 * Reuses the tables of finished tests of this file, because creating tables takes longer than most tests. Stores that are
 * opened outside a test are not reused.
 */
const done = new Map<string, string[]>();
let ofThisTest: { readonly server: string; readonly prefix: string }[] | null = null;

beforeEach(() => {
  ofThisTest = [];
});

afterEach(() => {
  for (const { server, prefix } of ofThisTest ?? []) done.set(server, [...(done.get(server) ?? []), prefix]);
  ofThisTest = null;
});

/** Opens an empty store. */
export function openRecycled(server: SqlServer): ConformanceTarget {
  const used = ofThisTest ? done.get(server.name)?.pop() : undefined;
  const prefix = used ?? `t${randomBytes(6).toString('hex')}_`;
  ofThisTest?.push({ server: server.name, prefix });
  let emptied: Promise<void> | undefined;
  const empty = (): Promise<void> => (emptied ??= used === undefined ? Promise.resolve() : removeAll(server, prefix));
  const connect = (): SessionsAdapter => initAfter(adapterOf(optionsOn(server, prefix)), empty);
  return { adapter: connect(), connect };
}

/** Returns the adapter, whose start waits for a promise. */
function initAfter(adapter: SessionsAdapter, before: () => Promise<void>): SessionsAdapter {
  const init = adapter.init?.bind(adapter);
  return Object.assign(adapter, {
    init: async () => {
      await before();
      await init?.();
    },
  });
}

/** Drivers are imported here, because most files that import this one use no server. */
async function removeAll({ type, url }: SqlServer, prefix: string): Promise<void> {
  const tables = Object.keys(TABLES).filter((table) => table !== 'schema');
  const sql = tables.map((table) => `DELETE FROM ${prefix}${columnName(table)}`).join(';');
  if (type === 'postgres') {
    const { Client } = await import('pg').then(({ default: pg }) => pg);
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(sql);
    await client.end();
    return;
  }
  const { createConnection } = await import('mysql2/promise');
  const connection = await createConnection({ uri: url, multipleStatements: true });
  await connection.query(sql);
  await connection.end();
}
