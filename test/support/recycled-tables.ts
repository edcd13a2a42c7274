import { randomBytes } from 'node:crypto';
import mysql from 'mysql2/promise';
import { Client } from 'pg';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { columnName, TABLES } from '../../lib/store/sql/columns.js';
import { adapterOf } from './connections.js';
import { type SqlServer } from './servers.js';
import { optionsOn } from './stores.js';

/**
 * Tables of tests of this file that are over, for those that follow: to make new ones takes longer than most tests do. What is opened
 * outside a test stays its own.
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

/** As an empty store of its own. */
export function openRecycled(server: SqlServer): ConformanceTarget {
  const used = ofThisTest ? done.get(server.name)?.pop() : undefined;
  const prefix = used ?? `t${randomBytes(6).toString('hex')}_`;
  ofThisTest?.push({ server: server.name, prefix });
  let emptied: Promise<void> | undefined;
  const empty = (): Promise<void> => (emptied ??= used === undefined ? Promise.resolve() : removeAll(server, prefix));
  const connect = (): SessionsAdapter => initAfter(adapterOf(optionsOn(server, prefix)), empty);
  return { adapter: connect(), connect };
}

/** The adapter, which waits for something before it begins. */
function initAfter(adapter: SessionsAdapter, before: () => Promise<void>): SessionsAdapter {
  const init = adapter.init?.bind(adapter);
  return Object.assign(adapter, {
    init: async () => {
      await before();
      await init?.();
    },
  });
}

async function removeAll({ type, url }: SqlServer, prefix: string): Promise<void> {
  const tables = Object.keys(TABLES).filter((table) => table !== 'schema');
  const sql = tables.map((table) => `DELETE FROM ${prefix}${columnName(table)}`).join(';');
  if (type === 'postgres') {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(sql);
    await client.end();
    return;
  }
  const connection = await mysql.createConnection({ uri: url, multipleStatements: true });
  await connection.query(sql);
  await connection.end();
}
