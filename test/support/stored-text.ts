import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import { Client } from 'pg';
import { columnName, TABLES } from '../../lib/store/sql/columns.js';
import { type StoreOptions } from './connections.js';

/** Returns all rows or all keys with their values as strings, without the tombstones of erased sessions. */
export async function storedText(options: StoreOptions): Promise<string> {
  if ('keyPrefix' in options) return redisText(String(options.url), String(options.keyPrefix));
  const { dataSource, tablePrefix = '' } = options as { dataSource: Record<string, string>; tablePrefix?: string };
  const tables = Object.keys(TABLES).filter((table) => table !== 'tombstone');
  const select = (table: string): string => `SELECT * FROM ${tablePrefix}${columnName(table)}`;
  const { type, url, database } = dataSource;
  if (type === 'postgres') {
    const client = new Client({ connectionString: url });
    await client.connect();
    const rows = [];
    for (const table of tables) rows.push((await client.query<object>(select(table))).rows);
    await client.end();
    return JSON.stringify(rows);
  }
  if (type === 'better-sqlite3') {
    const file = new Database(database, { readonly: true });
    const rows = tables.map((table) => file.prepare(select(`agent_${columnName(table)}`)).all());
    file.close();
    return JSON.stringify(rows);
  }
  const connection = await mysql.createConnection({ uri: url });
  const rows = [];
  for (const table of tables) rows.push((await connection.query(select(table)))[0]);
  await connection.end();
  return JSON.stringify(rows);
}

async function redisText(url: string, prefix: string): Promise<string> {
  const redis = new Redis(url);
  const found = await redis.eval(READ_ALL, 0, `*${prefix}*`);
  redis.disconnect();
  return JSON.stringify(found);
}

/** Reads atomically, because a worker may be writing. */
const READ_ALL = `
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if not string.find(key, 'tombstone', 1, true) then
    local kind = redis.call('TYPE', key).ok
    found[#found + 1] = key
    if kind == 'hash' then found[#found + 1] = redis.call('HGETALL', key)
    elseif kind == 'list' then found[#found + 1] = redis.call('LRANGE', key, 0, -1)
    elseif kind == 'set' then found[#found + 1] = redis.call('SMEMBERS', key)
    elseif kind == 'zset' then found[#found + 1] = redis.call('ZRANGE', key, 0, -1)
    elseif kind == 'stream' then found[#found + 1] = redis.call('XRANGE', key, '-', '+')
    else found[#found + 1] = redis.call('GET', key) end
  end
end
return found
`;
