import { type JsonValue } from '../../common/json.js';
import {
  type StateAddress,
  type StateDocument,
  type StateStore,
  type StateWriteOptions,
} from '../../state/state.store.js';
import { iso } from '../embedded/row-mapping.js';
import { type RedisDatabase } from './redis-database.js';
import { entries, type Fields } from './redis-rows.js';
import {
  DELETE_DOCUMENT,
  DELETE_EXPIRED_DOCUMENTS,
  EXTEND_DOCUMENT,
  GET_DOCUMENT,
  SET_DOCUMENT,
} from './scripts/document-operations.js';

const NUMBERS: ReadonlySet<string> = new Set(['version', 'expiresAt']);

/** State documents in Redis, which expires them itself. */
export class RedisState implements StateStore {
  constructor(private readonly db: RedisDatabase) {}

  async get(address: StateAddress): Promise<StateDocument | null> {
    const [fields] = await this.db.run<[Fields | null]>(GET_DOCUMENT, nameOf(address));
    return fields && documentOf(fields);
  }

  async set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    const { ifVersion, ttlMs } = options;
    const text = JSON.stringify(value);
    const [version, expiresAt] = await this.db.run<[version: number | null, expiresAt?: number | null]>(
      SET_DOCUMENT,
      nameOf(address),
      address.sessionId,
      text,
      ifVersion ?? '',
      ttlMs ?? '',
    );
    return version === null ? null : toDocument(text, version, expiresAt ?? null);
  }

  async extend(address: StateAddress, ttlMs: number): Promise<boolean> {
    const [found] = await this.db.run<[number]>(EXTEND_DOCUMENT, nameOf(address), ttlMs);
    return found === 1;
  }

  async delete(address: StateAddress): Promise<boolean> {
    const [found] = await this.db.run<[number]>(DELETE_DOCUMENT, nameOf(address), address.sessionId);
    return found === 1;
  }

  async deleteExpired(limit: number): Promise<number> {
    const [removed] = await this.db.run<[number]>(DELETE_EXPIRED_DOCUMENTS, limit);
    return removed;
  }
}

/** The parts of the address, apart by what no name may hold; see scripts/common.ts. */
function nameOf({ namespace, scope, sessionId, key }: StateAddress): string {
  return [namespace, scope, sessionId, key].join('\u001f');
}

function documentOf(fields: Fields): StateDocument {
  const { value, version, expiresAt } = Object.fromEntries(entries(fields, NUMBERS));
  return toDocument(String(value), Number(version), expiresAt === undefined ? null : Number(expiresAt));
}

function toDocument(text: string, version: number, expiresAt: number | null): StateDocument {
  return {
    value: JSON.parse(text) as JsonValue,
    version,
    ...(expiresAt === null ? {} : { expiresAt: iso(expiresAt) }),
  };
}
