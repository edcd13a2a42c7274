import { type JsonValue } from '../../common/json.js';
import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateDocument,
  type StateStore,
  type StateWriteOptions,
} from '../../state/state.store.js';
import { type RedisDatabase } from './redis-database.js';
import { appendArgs, documentId, documentOf } from './redis-documents.js';
import { type Fields } from './redis-rows.js';
import {
  ACCESS_DOCUMENT,
  APPEND_DOCUMENT,
  DELETE_DOCUMENT,
  DELETE_EXPIRED_DOCUMENTS,
  EVICT_IDLE_DOCUMENTS,
  GET_DOCUMENT,
  SET_DOCUMENT,
} from './scripts/document-operations.js';
import { type Script } from './scripts/script.js';

/** State documents in Redis, which expires them itself. */
export class RedisState implements StateStore {
  constructor(private readonly db: RedisDatabase) {}

  get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null> {
    if (!access) return this.document(GET_DOCUMENT, documentId(address));
    return this.document(ACCESS_DOCUMENT, documentId(address), access.ttlMs ?? '');
  }

  async set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    const { ifVersion, ttlMs } = options;
    const text = JSON.stringify(value);
    const args = [documentId(address), address.sessionId, text, ifVersion ?? '', ttlMs ?? ''];
    const [fields] = await this.db.run<[Fields | null]>(SET_DOCUMENT, ...args);
    return fields && documentOf(['value', text, ...fields]);
  }

  append(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    return this.document(APPEND_DOCUMENT, address.sessionId, ...appendArgs(address, append));
  }

  async delete(address: StateAddress): Promise<boolean> {
    return (await this.count(DELETE_DOCUMENT, documentId(address))) === 1;
  }

  deleteExpired(limit: number): Promise<number> {
    return this.count(DELETE_EXPIRED_DOCUMENTS, limit);
  }

  evictIdle(namespace: string, keep: number, limit: number): Promise<number> {
    return this.count(EVICT_IDLE_DOCUMENTS, namespace, keep, limit);
  }

  private async document(script: Script, ...args: readonly (string | number)[]): Promise<StateDocument | null> {
    const [fields] = await this.db.run<[Fields | null]>(script, ...args);
    return fields && documentOf(fields);
  }

  private async count(script: Script, ...args: readonly (string | number)[]): Promise<number> {
    const [count] = await this.db.run<[number]>(script, ...args);
    return count;
  }
}
