import { assertId, mintId } from '../common/ids.js';
import { type ApplyEntry, changeBy, FOLD_AT, type FoldAt, foldedBy, foldOf, valueOf } from './module-document.js';
import {
  type StateAddress,
  type StateChange,
  type StateDocument,
  type StateName,
  type DocumentStore,
} from '../ledger/state.store.js';

/** What a document of a module means. */
export interface ModuleValue<Value> {
  readonly value: Value;
  readonly document: StateDocument;
}

/** What a change has made of a document. */
export interface ModuleChange<Value> {
  /** `null`: there is none now. */
  readonly after: Value | null;
  readonly document: StateDocument;
  /** Whether it was of the expected version. */
  readonly applied: boolean;
  /** Whether it made a difference: an entry that does not fit makes none. */
  readonly changed: boolean;
}

type FoldHook = (sessionId: string, name: StateName, document: StateDocument, batches: number) => Promise<void>;

/** What else is to be done when the oldest batches of a document are folded into its value. */
interface FoldHooks {
  readonly before: FoldHook;
  /** Called when the document was gone by then. */
  readonly tooLate: FoldHook;
}

/** The documents of a module in the store. Each operation is one round trip. */
export class ModuleDocuments<Value, Entry> {
  constructor(
    private readonly store: DocumentStore,
    private readonly apply: ApplyEntry<Value, Entry>,
    private readonly foldAt: FoldAt = FOLD_AT,
    private readonly hooks?: FoldHooks,
  ) {}

  /** @returns `null` when there is none, or nothing in it */
  async read(sessionId: string, name: StateName): Promise<ModuleValue<Value> | null> {
    const document = await this.store.get(addressOf(sessionId, name));
    const value = document && valueOf(document, this.apply);
    return document && value !== null ? { value, document } : null;
  }

  /**
   * Adds to a document; once in a while a second round trip makes it shorter.
   * @returns `null` when there is none, and the change makes none
   */
  async change(sessionId: string, { name, append }: StateChange): Promise<ModuleChange<Value> | null> {
    const address = addressOf(sessionId, name);
    const document = await this.store.append(address, append);
    if (!document) return null;
    const change = changeBy(append.id, document, this.apply);
    const after = change ? change.after : valueOf(document, this.apply);
    await this.fold(sessionId, name, document);
    return { after, document, applied: change !== null, changed: change !== null && change.after !== change.before };
  }

  private async fold(sessionId: string, name: StateName, document: StateDocument): Promise<void> {
    // Of many who change it at the same time, one does it.
    const isDue = document.batches.length % this.foldAt.batches === 0;
    const fold = isDue && foldOf(document, this.apply, this.foldAt);
    if (!fold) return;
    const batches = foldedBy(document, fold);
    const append = { id: mintId(), entries: [], fold, keepExpiry: true };
    try {
      await this.hooks?.before(sessionId, name, document, batches);
      const folded = await this.store.append({ ...name, sessionId }, append);
      if (folded?.createdAt !== document.createdAt) await this.hooks?.tooLate(sessionId, name, document, batches);
    } catch {
      // What was asked for is done; the next change tries again.
    }
  }
}

export function addressOf(sessionId: string, name: StateName): StateAddress {
  assertId(sessionId, 'sessionId');
  return { ...name, sessionId };
}
