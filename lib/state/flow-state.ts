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
  /** One more than that of the checkpoint before. A flow that is deleted and saved again never has an earlier version. */
  readonly version: number;
  readonly checkpoint: JsonValue;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
}

/**
 * Checkpoints of flows, by session and name of the flow (STA-06). Each that is saved is a version; the last 100 are kept. JSON only; what goes
 * in and comes out are copies.
 *
 * All methods reject with InvalidInputError for ids and names that are none, and StoreUnavailableError when the store does not answer.
 */
export class FlowState {
  private readonly documents: ModuleDocuments<StoredCheckpoint, FlowChange>;

  /** @param maxBytes of a checkpoint as JSON */
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
   * Adds a version; one round trip, now and then some more for those that are older.
   * @returns `null` when the latest had another version than `ifVersion`; nothing was saved then
   * @throws StateSerializationError, TooLargeError
   */
  async save(
    sessionId: string,
    flow: string,
    checkpoint: unknown,
    options: FlowSaveOptions = {},
  ): Promise<FlowCheckpoint | null> {
    const name = nameOf(flow);
    const over = checkInput(FlowSaveOptions, options, 'options');
    const value = toJson(checkpoint, 'checkpoint');
    stringifyWithin(value, this.maxBytes, 'The checkpoint');
    const { append } = flowStateChange(flow, [{ type: 'save', checkpoint: value }]);
    const made = await this.documents.change(sessionId, { name, append: { ...append, ...over } });
    if (!made?.applied) return null;
    const { version, batches } = made.document;
    const later = batches.length - 1 - batches.findIndex(({ id }) => id === append.id);
    const saved = checkpointsIn(made.document).find((each) => each.version === version - later);
    return saved ? toFlowCheckpoint(flow, saved) : null;
  }

  /** @param version left out: the latest @returns `null` when there is none, or it is not kept any more */
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

  /** The latest checkpoint of each flow, by name, in the order of its UTF-8 bytes. Costs the page. */
  async list(sessionId: string, query: StatePageQuery = {}): Promise<StatePage<FlowCheckpoint>> {
    assertId(sessionId, 'sessionId');
    const { limit = 50, after } = checkInput(StatePageQuery, query, 'query');
    const selection = { namespace: FLOW_NAMESPACE, sessionId, scope: '' };
    const page = { limit, ...(after === undefined ? {} : { after }) };
    const { items, next } = await listDocuments(this.store, selection, page);
    return { items: items.flatMap((item) => flowIn(item) ?? []), ...(next === undefined ? {} : { next }) };
  }

  /** The versions that are kept, the oldest first. Costs the page. */
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

  /** With all its versions. @returns whether there was one */
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

  /** Versions that stand in documents of their own, after one of them. */
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

  /** The flow is gone, and what was put aside of it goes as well. */
  private async withdraw(sessionId: string, flow: StateName, document: StateDocument, batches: number): Promise<void> {
    for (const { name } of archiveChanges(flow.key, document, batches)) {
      await this.store.delete({ ...name, sessionId });
    }
  }
}

/** The latest checkpoint that a document holds; `null`: none any more. */
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
