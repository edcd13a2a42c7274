import { type JsonValue } from '../../common/json.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type StateAddress, type StateAppend, type StateDocument } from '../../ledger/state.store.js';
import { ClientDriver, latest } from './client-driver.js';
import { action, type Specimen } from './specimen.js';
import { TimedModel } from './timed-model.js';

/** More rows than any store has here. */
const ALL = 100_000;

const KEYS = ['cart', 'plan'] as const;
type Key = (typeof KEYS)[number];

/** The random part of a write. */
interface Aim {
  readonly key: Key;
  /** The error of the expected version; `null` for a write without one. */
  readonly off: number | null;
  readonly ttlMs: number | null;
}

interface Appending extends Aim {
  readonly type: 'append';
  readonly entries: number;
  /** Creates a missing document. */
  readonly makes: boolean;
  /** The number of recently read batches that the fold leaves; `null` for no fold. */
  readonly unfolded: number | null;
}

type Plain =
  | { readonly type: 'access'; readonly key: Key; readonly ttlMs: number | null }
  | { readonly type: 'get' | 'delete'; readonly key: Key }
  | { readonly type: 'evictIdle'; readonly keep: number; readonly limit: number }
  | { readonly type: 'deleteExpired' | 'deleteSession' | 'eraseSession' };

type DocumentAction =
  | (Aim & { readonly type: 'set' })
  | Appending
  /** Sends one of the last appends again. */
  | { readonly type: 'repeat'; readonly which: number }
  | Plain;

interface Setting {
  readonly type: 'set';
  readonly key: Key;
  readonly value: string;
  readonly ifVersion: number | null;
  readonly ttlMs: number | null;
}

type DocumentOperation = Setting | { readonly type: 'append'; readonly key: Key; readonly append: StateAppend } | Plain;

/** A document as clients see it, with times in milliseconds; `null` means no expiry. */
interface Shown {
  readonly value: JsonValue;
  readonly batches: readonly ShownBatch[];
  readonly version: number;
  readonly createdAt: number;
  readonly accessedAt: number;
  readonly expiresAt: number | null;
}

interface ShownBatch {
  readonly id: string;
  readonly at: number;
  readonly entries: readonly JsonValue[];
}

/** The documents of a session (StateStore). */
export const DOCUMENTS: Specimen<DocumentAction, DocumentOperation> = {
  actions(fc, { given, exact }) {
    const key = fc.constantFrom(...KEYS);
    const ttlMs = fc.option(fc.constantFrom(...given));
    const off = fc.option(fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1)));
    const mostlyAny = fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, off);
    const [entries, makes, unfolded] = [fc.nat(2), fc.boolean(), fc.option(fc.nat(2))];
    const evictIdle = { weight: 2, arbitrary: action(fc, 'evictIdle', { keep: fc.nat(2), limit: fc.nat(2) }) };
    return fc.oneof(
      { weight: 6, arbitrary: action(fc, 'set', { key, off, ttlMs }) },
      { weight: 16, arbitrary: action(fc, 'append', { key, off: mostlyAny, ttlMs, entries, makes, unfolded }) },
      { weight: 3, arbitrary: action(fc, 'repeat', { which: fc.nat(3) }) },
      { weight: 5, arbitrary: action(fc, 'get', { key }) },
      { weight: 4, arbitrary: action(fc, 'access', { key, ttlMs }) },
      { weight: 2, arbitrary: action(fc, 'delete', { key }) },
      // Not in concurrent runs: it may skip a document that another call is writing.
      ...(exact ? [evictIdle] : []),
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
  /** The highest version of each key so far. A document that is created again must exceed it. */
  highest: Partial<Record<Key, number>> = {};

  apply(operation: DocumentOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'set':
        return this.set(operation, seen);
      case 'append':
        return this.append(operation.key, operation.append, seen);
      case 'get':
        return this.show(this.at(operation.key), seen);
      case 'access': {
        const document = this.at(operation.key);
        return document ? this.put(operation.key, document, operation.ttlMs, seen) : null;
      }
      case 'delete': {
        const found = this.at(operation.key) !== undefined;
        delete this.documents[operation.key];
        return found;
      }
      case 'evictIdle':
        return this.evictIdle(operation.keep, operation.limit, (seen as { readonly left: readonly Key[] }).left);
      case 'deleteExpired':
        return null;
      case 'deleteSession':
      case 'eraseSession':
        this.documents = {};
        this.erased ||= operation.type === 'eraseSession';
        return null;
    }
  }

  private set({ key, value, ifVersion, ttlMs }: Setting, seen: unknown): unknown {
    if (this.erased) return 'SESSION_NOT_FOUND';
    const { version, createdAt } = this.at(key) ?? this.nothing(seen);
    if (ifVersion !== null && ifVersion !== version) return null;
    return this.put(
      key,
      { value, batches: [], version: this.versionAfter(key, version, seen), createdAt },
      ttlMs,
      seen,
    );
  }

  private append(key: Key, { id, entries, initial, ifVersion, fold, ttlMs }: StateAppend, seen: unknown): unknown {
    if (this.erased) return 'SESSION_NOT_FOUND';
    const stored = this.at(key);
    if (!stored && initial === undefined) return null;
    const { value, batches, version, createdAt } = stored ?? { ...this.nothing(seen), value: initial ?? null };
    if (batches.some((batch) => batch.id === id) || (ifVersion ?? version) !== version) return this.show(stored, seen);

    const folded = fold ? batches.findIndex((batch) => batch.id === fold.through) + 1 : 0;
    const rest = batches.slice(folded);
    const added = entries.length > 0 ? [{ id, at: this.timeOf(seen), entries }] : [];
    const isNew = !stored || added.length > 0;
    const after = isNew ? this.versionAfter(key, version, seen) : version;
    const changed = { batches: [...rest, ...added], version: after, createdAt };
    return this.put(key, { value: fold && folded > 0 ? fold.value : value, ...changed }, ttlMs ?? null, seen);
  }

  /** Accepts the store's choice among documents with equal access times. */
  private evictIdle(keep: number, limit: number, left: readonly Key[]): unknown {
    const live = KEYS.filter((key) => this.at(key));
    const gone = live.filter((key) => !left.includes(key));
    const accessOf = (key: Key): number => this.at(key)?.accessedAt ?? 0;
    const isIdle = gone.every((key) => left.every((other) => accessOf(key) <= accessOf(other)));
    if (!isIdle || gone.length !== Math.min(limit, Math.max(0, live.length - keep))) return 'others';
    for (const key of gone) delete this.documents[key];
    return { went: gone.length, left };
  }

  /** Writes a document, which counts as an access. */
  private put(
    key: Key,
    document: Omit<Shown, 'accessedAt' | 'expiresAt'>,
    ttlMs: number | null,
    seen: unknown,
  ): unknown {
    const expiresAt = ttlMs === null ? null : this.now + ttlMs;
    const { value, batches, version, createdAt } = document;
    const written = { value, batches, version, createdAt, accessedAt: this.timeOf(seen), expiresAt };
    this.documents[key] = written;
    this.highest[key] = version;
    return this.show(written, seen);
  }

  /** Returns the next version. The store chooses the first version of a document, above all earlier ones of its key. */
  private versionAfter(key: Key, version: number, seen: unknown): number {
    if (version > 0) return version + 1;
    return Math.max((this.highest[key] ?? 0) + 1, (seen as Partial<Shown> | null)?.version ?? 0);
  }

  /** Returns the initial fields of a new document. */
  private nothing(seen: unknown): Pick<Shown, 'batches' | 'version' | 'createdAt'> {
    return { batches: [], version: 0, createdAt: this.timeOf(seen) };
  }

  /** Returns the time of the operation. */
  private timeOf(seen: unknown): number {
    return this.stamp(this.now, (seen as Partial<Shown> | null)?.accessedAt);
  }

  /** Returns the document of a key unless it has expired. */
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
  /** The documents that the clients have read last. */
  private readonly seen: Partial<Record<Key, StateDocument>> = {};
  private readonly appended: (DocumentOperation & { readonly type: 'append' })[] = [];

  plan(action: DocumentAction): DocumentOperation | null {
    switch (action.type) {
      case 'set': {
        const { type, key, off, ttlMs } = action;
        return {
          type,
          key,
          value: this.mint('value'),
          ifVersion: off === null ? null : this.versionOf(key) + off,
          ttlMs,
        };
      }
      case 'append': {
        const operation = { type: action.type, key: action.key, append: this.appendOf(action) };
        this.appended.push(operation);
        return operation;
      }
      case 'repeat':
        return latest(this.appended, action.which) ?? null;
      default:
        return action;
    }
  }

  protected async call({ state, sessions }: SessionsAdapter, operation: DocumentOperation): Promise<unknown> {
    switch (operation.type) {
      case 'set': {
        const { key, value, ifVersion, ttlMs } = operation;
        const options = { ...(ifVersion === null ? {} : { ifVersion }), ...accessOf(ttlMs) };
        return this.shown(key, await state.set(this.at(key), value, options));
      }
      case 'append':
        return this.shown(operation.key, await state.append(this.at(operation.key), operation.append));
      case 'get':
      case 'access': {
        const { key } = operation;
        const access = operation.type === 'access' ? accessOf(operation.ttlMs) : undefined;
        const document = await state.get(this.at(key), access);
        if (!document) delete this.seen[key];
        return this.shown(key, document);
      }
      case 'delete':
        return state.delete(this.at(operation.key));
      case 'evictIdle': {
        const went = await state.evictIdle(this.id, operation.keep, operation.limit);
        const left: Key[] = [];
        for (const key of KEYS) if (await state.get(this.at(key))) left.push(key);
        return { went, left };
      }
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

  private appendOf({ key, off, ttlMs, entries, makes, unfolded }: Appending): StateAppend {
    const batches = this.seen[key]?.batches ?? [];
    return {
      id: this.mint('batch'),
      entries: Array.from({ length: entries }, () => this.mint('entry')),
      ...(makes ? { initial: this.mint('value') } : {}),
      ...(off === null ? {} : { ifVersion: this.versionOf(key) + off }),
      ...(unfolded === null
        ? {}
        : { fold: { through: batches.at(-1 - unfolded)?.id ?? 'none', value: this.mint('fold') } }),
      ...accessOf(ttlMs),
    };
  }

  private versionOf(key: Key): number {
    return this.seen[key]?.version ?? 0;
  }

  private at(key: Key): StateAddress {
    return { namespace: this.id, scope: '', sessionId: this.id, key };
  }

  private shown(key: Key, document: StateDocument | null): Shown | null {
    if (!document) return null;
    this.seen[key] = document;
    const { value, batches, version, createdAt, accessedAt, expiresAt } = document;
    return {
      value,
      batches: batches.map(({ id, at, entries }) => ({ id, at: this.since(at), entries })),
      version,
      createdAt: this.since(createdAt),
      accessedAt: this.since(accessedAt),
      expiresAt: expiresAt === undefined ? null : this.since(expiresAt),
    };
  }
}

function accessOf(ttlMs: number | null): { ttlMs?: number } {
  return ttlMs === null ? {} : { ttlMs };
}
