import { type AtomicSessionStoreAdapter } from '../../session/session.store.js';
import { type SessionsAdapter } from '../../sessions.adapter.js';
import { type StateAddress, type StateDocument } from '../../state/state.store.js';
import { ClientDriver } from './client-driver.js';
import { action, type Specimen } from './specimen.js';
import { TimedModel } from './timed-model.js';

/** More than any store has here. */
const ALL = 100_000;

const KEYS = ['cart', 'plan'] as const;
type Key = (typeof KEYS)[number];

type DocumentAction =
  | {
      readonly type: 'set';
      readonly key: Key;
      /** By how much the expected version is wrong; `null`: none is expected. */
      readonly off: number | null;
      readonly ttlMs: number | null;
    }
  | { readonly type: 'extend'; readonly key: Key; readonly ttlMs: number }
  | { readonly type: 'get' | 'delete'; readonly key: Key }
  | { readonly type: 'deleteExpired' | 'deleteSession' | 'eraseSession' };

interface Writing {
  readonly type: 'set';
  readonly key: Key;
  readonly value: string;
  readonly ifVersion: number | null;
  readonly ttlMs: number | null;
}

type DocumentOperation = Exclude<DocumentAction, { type: 'set' }> | Writing;

/** As clients see it; `null`: for ever. */
interface Shown {
  readonly value: unknown;
  readonly version: number;
  readonly expiresAt: number | null;
}

/** The documents of a session: StateStore. */
export const DOCUMENTS: Specimen<DocumentAction, DocumentOperation> = {
  actions(fc, { given }) {
    const key = fc.constantFrom(...KEYS);
    const ttlMs = fc.constantFrom(...given);
    const ttlOrNone = fc.option(ttlMs);
    const off = fc.option(fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1)));
    return fc.oneof(
      { weight: 12, arbitrary: action(fc, 'set', { key, off, ttlMs: ttlOrNone }) },
      { weight: 5, arbitrary: action(fc, 'get', { key }) },
      { weight: 4, arbitrary: action(fc, 'extend', { key, ttlMs }) },
      { weight: 3, arbitrary: action(fc, 'delete', { key }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('deleteExpired', 'deleteSession', 'eraseSession') }) },
    );
  },
  reads: KEYS.map((key) => ({ type: 'get', key })),
  model: (durations) => new DocumentModel(durations),
  open: (context) => DocumentDriver.open(context),
};

class DocumentModel extends TimedModel<DocumentOperation> {
  documents: Partial<Record<Key, Shown>> = {};
  erased = false;

  apply(operation: DocumentOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'set':
        return this.set(operation, seen);
      case 'get':
        return this.show(this.at(operation.key), seen);
      case 'extend': {
        const document = this.at(operation.key);
        if (!document) return null;
        this.documents[operation.key] = { ...document, expiresAt: this.now + operation.ttlMs };
        return this.show(this.documents[operation.key], seen);
      }
      case 'delete': {
        const found = this.at(operation.key) !== undefined;
        delete this.documents[operation.key];
        return found;
      }
      case 'deleteExpired':
        return null;
      case 'deleteSession':
      case 'eraseSession':
        this.documents = {};
        this.erased ||= operation.type === 'eraseSession';
        return null;
    }
  }

  private set({ key, value, ifVersion, ttlMs }: Writing, seen: unknown): unknown {
    if (this.erased) return 'SESSION_NOT_FOUND';
    const version = this.at(key)?.version ?? 0;
    if (ifVersion !== null && ifVersion !== version) return null;
    const written = { value, version: version + 1, expiresAt: ttlMs === null ? null : this.now + ttlMs };
    this.documents[key] = written;
    return this.show(written, seen);
  }

  /** The document of a key; an expired one is not there. */
  private at(key: Key): Shown | undefined {
    const document = this.documents[key];
    return document && (document.expiresAt ?? Infinity) > this.now ? document : undefined;
  }

  private show(document: Shown | undefined, seen: unknown): Shown | null {
    if (!document) return null;
    const { expiresAt } = document;
    return {
      ...document,
      expiresAt: expiresAt === null ? null : this.stamp(expiresAt, (seen as Shown | null)?.expiresAt),
    };
  }
}

class DocumentDriver extends ClientDriver<DocumentAction, DocumentOperation> {
  /** The versions that were seen last. */
  private readonly versions: Partial<Record<Key, number>> = {};

  plan(action: DocumentAction): DocumentOperation {
    if (action.type !== 'set') return action;
    const { type, key, off, ttlMs } = action;
    const ifVersion = off === null ? null : (this.versions[key] ?? 0) + off;
    return { type, key, value: this.mint('value'), ifVersion, ttlMs };
  }

  protected async call({ state, sessions }: SessionsAdapter, operation: DocumentOperation): Promise<unknown> {
    switch (operation.type) {
      case 'set': {
        const { key, value, ifVersion, ttlMs } = operation;
        const options = { ...(ifVersion === null ? {} : { ifVersion }), ...(ttlMs === null ? {} : { ttlMs }) };
        return this.shown(key, await state.set(this.at(key), value, options));
      }
      case 'get': {
        const document = await state.get(this.at(operation.key));
        if (!document) this.versions[operation.key] = 0;
        return this.shown(operation.key, document);
      }
      case 'extend':
        return this.shown(operation.key, await state.get(this.at(operation.key), { ttlMs: operation.ttlMs }));
      case 'delete':
        return state.delete(this.at(operation.key));
      case 'deleteExpired':
        await state.deleteExpired(ALL);
        return null;
      case 'deleteSession':
        await sessions.delete(this.id);
        return null;
      case 'eraseSession':
        await (sessions as AtomicSessionStoreAdapter).erase(this.id);
        return null;
    }
  }

  private at(key: Key): StateAddress {
    return { namespace: 'model', scope: '', sessionId: this.id, key };
  }

  private shown(key: Key, document: StateDocument | null): Shown | null {
    if (!document) return null;
    const { value, version, expiresAt } = document;
    this.versions[key] = version;
    return { value, version, expiresAt: expiresAt === undefined ? null : this.since(expiresAt) };
  }
}
