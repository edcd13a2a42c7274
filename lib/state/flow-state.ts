import { checkInput } from '../common/check-input.js';
import { assertId, assertName } from '../common/ids.js';
import { type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import {
  applyArchived,
  applyFlowChange,
  archiveChanges,
  type CheckpointVersion,
  checkpointsIn,
  FLOW_NAMESPACE,
  type FlowChange,
  flowName,
  flowStateChange,
  flowVersionName,
  FOLD_FLOW_AT,
  isKept,
  KEPT_VERSIONS,
  type StoredCheckpoint,
} from './flow-change.js';
import { valueOf } from './module-document.js';
import { addressOf, ModuleDocuments } from './module-documents.js';
import { eachDocument, listDocuments, type StatePage } from './state-data.js';
import { FlowSaveOptions, FlowVersionQuery, StatePageQuery } from './state.inputs.js';
import { type StateDocument, type StateEntry, type StateName, type StateStore } from '../ledger/state.store.js';

/** A checkpoint of a flow (STA-06). */
export interface FlowCheckpoint {
  readonly flow: string;
  /** Increases by one with each checkpoint. A recreated flow never has an earlier version. */
  readonly version: number;
  readonly checkpoint: JsonValue;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
}

/**
 * Stores checkpoints of flows by session and flow name (STA-06). Each saved checkpoint is a version; the last 100 are kept. Values
 * must be JSON and are copied on input and output.
 *
 * All methods reject with InvalidInputError for invalid ids and names, and with StoreUnavailableError if the store does not respond.
 */
export class FlowState {
  private readonly documents: ModuleDocuments<StoredCheckpoint, FlowChange>;

  /** @param maxBytes the maximum size of a checkpoint as JSON */
  constructor(
    private readonly store: StateStore,
    private readonly maxBytes: number,
  ) {
    this.documents = new ModuleDocuments(store, applyFlowChange, FOLD_FLOW_AT, {
      before: (...args) => this.archive(...args),
      tooLate: (...args) => this.withdraw(...args),
    });
  }

  /**
   * Saves a new version in one round trip; occasionally more round trips move older versions.
   * @returns `null` if the latest version is not `ifVersion`; nothing was saved
   * @throws StateSerializationError, TooLargeError
   */
  async save(
    sessionId: string,
    flow: string,
    checkpoint: unknown,
    options: FlowSaveOptions = {},
  ): Promise<FlowCheckpoint | null> {
    const name = nameOf(flow);
    const condition = checkInput(FlowSaveOptions, options, 'options');
    const value = toJson(checkpoint, 'checkpoint');
    stringifyWithin(value, this.maxBytes, 'The checkpoint');
    const { append } = flowStateChange(flow, [{ type: 'save', checkpoint: value }]);
    const made = await this.documents.change(sessionId, { name, append: { ...append, ...condition } });
    if (!made?.applied) return null;
    const { version, batches } = made.document;
    const later = batches.length - 1 - batches.findIndex(({ id }) => id === append.id);
    const saved = checkpointsIn(made.document).find((each) => each.version === version - later);
    return saved ? toFlowCheckpoint(flow, saved) : null;
  }

  /** Returns a checkpoint, or `null` if it does not exist or was removed. @param version default: the latest */
  async load(sessionId: string, flow: string, version?: number): Promise<FlowCheckpoint | null> {
    const name = nameOf(flow);
    if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1)) {
      throw new InvalidInputError('version', 'must be an integer of 1 or more.');
    }
    const document = await this.store.get(addressOf(sessionId, name));
    const here = document ? checkpointsIn(document) : [];
    const latest = here.at(-1);
    if (!latest) return null;
    const found = version === undefined ? latest : here.find((each) => each.version === version);
    if (found) return toFlowCheckpoint(flow, found);
    if (version === undefined || !isKept(version, latest.version) || version <= latest.version - latest.count)
      return null;
    const earlier = await this.store.get({ ...flowVersionName(flow, version), sessionId });
    const stored = earlier && valueOf(earlier, applyArchived);
    return stored && toFlowCheckpoint(flow, { version, ...stored });
  }

  /** Lists the latest checkpoint of each flow, by the UTF-8 bytes of its name. The cost depends on the page size. */
  async list(sessionId: string, query: StatePageQuery = {}): Promise<StatePage<FlowCheckpoint>> {
    assertId(sessionId, 'sessionId');
    const { limit = 50, after } = checkInput(StatePageQuery, query, 'query');
    const selection = { namespace: FLOW_NAMESPACE, sessionId, scope: '' };
    const page = { limit, ...(after === undefined ? {} : { after }) };
    const { items, next } = await listDocuments(this.store, selection, page);
    return { items: items.flatMap((item) => flowIn(item) ?? []), ...(next === undefined ? {} : { next }) };
  }

  /** Lists the stored versions, oldest first. The cost depends on the page size. */
  async versions(sessionId: string, flow: string, query: FlowVersionQuery = {}): Promise<FlowCheckpoint[]> {
    const name = nameOf(flow);
    const { after = 0, limit = 100 } = checkInput(FlowVersionQuery, query, 'query');
    const document = await this.store.get(addressOf(sessionId, name));
    const here = document ? checkpointsIn(document) : [];
    const latest = here.at(-1);
    if (!latest) return [];
    const begin = Math.max(after, latest.version - Math.min(KEPT_VERSIONS, latest.count));
    const earlier = begin + 1 < here[0].version ? await this.archived(sessionId, flow, begin, limit) : [];
    return [...earlier.filter(({ version }) => version < here[0].version), ...here]
      .filter(({ version }) => version > begin)
      .slice(0, limit)
      .map((each) => toFlowCheckpoint(flow, each));
  }

  /** Deletes a flow with all its versions. @returns whether it existed */
  async delete(sessionId: string, flow: string): Promise<boolean> {
    const deleted = await this.store.delete(addressOf(sessionId, nameOf(flow)));
    for await (const { scope, key } of eachDocument(this.store, {
      namespace: FLOW_NAMESPACE,
      sessionId,
      scope: flow,
    })) {
      await this.store.delete({ namespace: FLOW_NAMESPACE, sessionId, scope, key });
    }
    return deleted;
  }

  /** Returns versions that have their own documents, after a version. */
  private async archived(
    sessionId: string,
    flow: string,
    after: number,
    limit: number,
  ): Promise<readonly CheckpointVersion[]> {
    const { namespace, scope, key } = flowVersionName(flow, after);
    const entries = await this.store.list({ namespace, sessionId, scope, after: { scope, key }, limit });
    return entries.flatMap((entry) => {
      const stored = valueOf(entry.document, applyArchived);
      return stored ? { version: Number(entry.key), ...stored } : [];
    });
  }

  private async archive(sessionId: string, name: StateName, document: StateDocument, batches: number): Promise<void> {
    for (const change of archiveChanges(name.key, document, batches)) {
      await this.store.append({ ...change.name, sessionId }, change.append);
    }
  }

  /** Deletes the archived versions of a flow that was deleted meanwhile. */
  private async withdraw(sessionId: string, flow: StateName, document: StateDocument, batches: number): Promise<void> {
    for (const { name } of archiveChanges(flow.key, document, batches)) {
      await this.store.delete({ ...name, sessionId });
    }
  }
}

/** Returns the latest checkpoint in a document; `null` if none exists. */
export function flowIn({ key, document }: StateEntry): FlowCheckpoint | null {
  const latest = checkpointsIn(document).at(-1);
  return latest ? toFlowCheckpoint(key, latest) : null;
}

function toFlowCheckpoint(flow: string, { version, checkpoint, savedAt }: CheckpointVersion): FlowCheckpoint {
  return { flow, version, checkpoint, savedAt };
}

function nameOf(flow: string): StateName {
  assertName(flow, 'flow');
  return flowName(flow);
}
