import { Redis } from 'ioredis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type StateAddress } from 'nestjs-agent-sessions/adapter';
import { type CoreDatabase } from '../../lib/store/core/tables.js';
import { type StoreOptions } from './connections.js';

/** The record to break: a session or a turn by id, a document by its address. */
export type BrokenRecord =
  { readonly kind: 'session' | 'turn'; readonly id: string } | ({ readonly kind: 'document' } & StateAddress);

/** A string that is not valid JSON. */
const BROKEN = '{broken';

/** Breaks a stored record behind the store's back, except in PostgreSQL. */
export async function corruptRecord(
  adapter: SessionsAdapter,
  record: BrokenRecord,
  options?: StoreOptions,
): Promise<void> {
  if (options && 'keyPrefix' in options) return inRedis(String(options.url), String(options.keyPrefix), record);
  const { db } = adapter.turns as unknown as { db: CoreDatabase };
  await db.write((tx) => {
    if (record.kind === 'session') tx.sessions.update(record.id, { metadata: BROKEN });
    else if (record.kind === 'turn') tx.turns.update(record.id, { request: BROKEN });
    else if (record.kind === 'document') tx.documents.update(record, { value: BROKEN });
  });
}

async function inRedis(url: string, prefix: string, record: BrokenRecord): Promise<void> {
  const redis = new Redis(url);
  const id = record.kind === 'document' ? record.key : record.id;
  const broken = await redis.eval(BREAK, 0, `*${prefix}*`, record.kind, id, BROKEN);
  redis.disconnect();
  if (broken !== 1) throw new Error(`Expected one record. Found: ${String(broken)}.`);
}

const BREAK = `
local broken = 0
local _, kind, id, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if redis.call('TYPE', key).ok == 'hash' then
    local isIt = redis.call('HGET', key, 'id') == id
    if kind == 'session' and isIt and redis.call('HEXISTS', key, 'userId') == 1 then
      redis.call('HSET', key, 'm:"plan"', text)
      broken = broken + 1
    elseif kind == 'turn' and string.sub(key, -#id) == id and redis.call('HEXISTS', key, 'accepted') == 1 then
      redis.call('HSET', key, 'accepted', (string.gsub(redis.call('HGET', key, 'accepted'), '{.*', text)))
      broken = broken + 1
    elseif kind == 'document' and string.sub(key, -#id) == id and redis.call('HEXISTS', key, 'value') == 1 then
      redis.call('HSET', key, 'value', text)
      broken = broken + 1
    end
  end
end
return broken
`;
