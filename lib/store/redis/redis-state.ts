import { type JsonValue } from '../../common/json.js';
import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateCleared,
  type StateDocument,
  type StateEntry,
  type StateQuery,
  type StateReset,
  type StateSelection,
  type StateStore,
  type StateWriteOptions,
} from '../../ledger/state.store.js';
import { readableList, readAll } from '../core/corrupt-records.js';
import { type RedisDatabase } from './redis-database.js';
import {
  appendArgs,
  documentBefore,
  documentId,
  documentOf,
  documentPrefix,
  entryOf,
  requiredSession,
} from './redis-documents.js';
import { type Fields } from './redis-rows.js';
import { type Script, SCRIPTS } from './redis-scripts.js';

/** Stores state documents in Redis, which expires them itself. */
export class RedisState implements StateStore {
  constructor(private readonly db: RedisDatabase) {}

  get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null> {
    if (!access) return this.document(SCRIPTS.getDocument, address);
    return this.document(SCRIPTS.accessDocument, address, access.ttlMs ?? '');
  }

  async set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    const { ifVersion, ttlMs } = options;
    const text = JSON.stringify(value);
    const args = [documentId(address), address.sessionId, text, ifVersion ?? '', ttlMs ?? '', requiredSession(options)];
    const [fields] = await this.db.run<[Fields | null]>(SCRIPTS.setDocument, ...args);
    return fields && documentOf(['value', text, ...fields]);
  }

  async append(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    const args = [address.sessionId, requiredSession(append), ...appendArgs(address, append)];
    const [fields] = await this.db.run<[Fields | null]>(SCRIPTS.appendDocument, ...args);
    return fields && documentOf(fields, address.key);
  }

  async delete(address: StateAddress): Promise<boolean> {
    return (await this.number(SCRIPTS.deleteDocument, documentId(address))) === 1;
  }

  async list(query: StateQuery): Promise<StateEntry[]> {
    return readableList(query.limit, async (limit) => {
      const args = [query.sessionId, documentPrefix(query), documentBefore(query), limit];
      const [found] = await this.db.run<[(readonly [id: string, fields: Fields])[]]>(SCRIPTS.listDocuments, ...args);
      return readAll(found, entryOf);
    });
  }

  count(selection: StateSelection): Promise<number> {
    return this.number(SCRIPTS.countDocuments, selection.sessionId, documentPrefix(selection));
  }

  async namespaces(sessionId: string): Promise<string[]> {
    const [names] = await this.db.run<[string[]]>(SCRIPTS.listNamespaces, sessionId);
    return names;
  }

  async reset({ sessionId, namespaces, epoch, log }: StateReset): Promise<StateCleared | null> {
    const head = log
      ? [documentId({ ...log.head, sessionId }), JSON.stringify(log.value), log.ifVersion]
      : ['', '', ''];
    const args = [sessionId, epoch, ...head, ...namespaces];
    const [counts, messages = 0] = await this.db.run<[counts: number[] | null, messages?: number]>(
      SCRIPTS.resetState,
      ...args,
    );
    if (counts === null) return null;
    return { documents: Object.fromEntries(namespaces.map((name, index) => [name, counts[index]])), messages };
  }

  deleteExpired(limit: number): Promise<number> {
    return this.number(SCRIPTS.deleteExpiredDocuments, limit);
  }

  evictIdle(namespace: string, keep: number, limit: number): Promise<number> {
    return this.number(SCRIPTS.evictIdleDocuments, namespace, keep, limit);
  }

  private async document(
    script: Script,
    address: StateAddress,
    ...args: readonly (string | number)[]
  ): Promise<StateDocument | null> {
    const [fields] = await this.db.run<[Fields | null]>(script, documentId(address), ...args);
    return fields && documentOf(fields, address.key);
  }

  private async number(script: Script, ...args: readonly (string | number)[]): Promise<number> {
    const [number] = await this.db.run<[number]>(script, ...args);
    return number;
  }
}
