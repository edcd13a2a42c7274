import { assertId, mintId } from '../common/ids.js';
import { type ApplyEntry, changeBy, FOLD_AT, type FoldAt, foldedBy, foldOf, valueOf } from './module-document.js';
import {
  type StateAddress,
  type StateChange,
  type StateDocument,
  type StateName,
  type DocumentStore,
} from '../ledger/state.store.js';

/** A document of a module with its computed value. */
export interface ModuleValue<Value> {
  readonly value: Value;
  readonly document: StateDocument;
}

/** The result of a change of a document. */
export interface ModuleChange<Value> {
  /** `null` if the document has no value now. */
  readonly after: Value | null;
  readonly document: StateDocument;
  /** True if the document had the expected version. */
  readonly applied: boolean;
  /** True if the value changed. An entry that does not fit changes nothing. */
  readonly changed: boolean;
}

type FoldHook = (sessionId: string, name: StateName, document: StateDocument, batches: number) => Promise<void>;

/** Additional work when the oldest batches of a document are folded into its value. */
interface FoldHooks {
  readonly before: FoldHook;
  /** Called if the document was deleted meanwhile. */
  readonly tooLate: FoldHook;
}

/** The documents of a module in the store. Each operation takes one round trip. */
export class ModuleDocuments<Value, Entry> {
  constructor(
    private readonly store: DocumentStore,
    private readonly apply: ApplyEntry<Value, Entry>,
    private readonly foldAt: FoldAt = FOLD_AT,
    private readonly hooks?: FoldHooks,
  ) {}

  /** @returns `null` if the document does not exist or has no value */
  async read(sessionId: string, name: StateName): Promise<ModuleValue<Value> | null> {
    const document = await this.store.get(addressOf(sessionId, name));
    const value = document && valueOf(document, this.apply);
    return document && value !== null ? { value, document } : null;
  }

  /**
   * Appends to a document. A second round trip folds it from time to time.
   * @returns `null` if the document does not exist and the change does not create it
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
    // Only one of several concurrent writers folds.
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
      // The change itself is stored. The fold is due again at the next multiple of `foldAt.batches`.
    }
  }
}

export function addressOf(sessionId: string, name: StateName): StateAddress {
  assertId(sessionId, 'sessionId');
  return { ...name, sessionId };
}
