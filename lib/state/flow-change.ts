import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { type FoldAt, valueOf } from './module-document.js';
import { namespaceOf } from '../ledger/namespaces.js';
import { type StateChange, type StateDocument, type StateName } from '../ledger/state.store.js';

/** The namespace of flow checkpoints. Reserved for this module. */
export const FLOW_NAMESPACE = namespaceOf('flow');

/** The number of versions kept per flow. */
export const KEPT_VERSIONS = 100;

/** Each batch is a checkpoint and may be large, so fold early. */
export const FOLD_FLOW_AT: FoldAt = { batches: 8, keep: 2 };

/** The document of a flow: its latest checkpoint. */
export interface StoredCheckpoint {
  readonly checkpoint: JsonValue;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
  /** The number of saved checkpoints of the flow, including this one. */
  readonly count: number;
}

/** A stored change of a flow. Each append is one version. */
export type FlowChange = { readonly type: 'save'; readonly checkpoint: JsonValue };

/** Returns the name of the flow's document, whose version is that of the latest checkpoint. */
export function flowName(flow: string): StateName {
  return { namespace: FLOW_NAMESPACE, scope: '', key: flow };
}

/** Returns the name of the document of an earlier version. Names sort by version. */
export function flowVersionName(flow: string, version: number): StateName {
  return { namespace: FLOW_NAMESPACE, scope: flow, key: String(version).padStart(16, '0') };
}

/** Returns the flow after a change. Pure. */
export function applyFlowChange(
  before: StoredCheckpoint | null,
  { checkpoint }: FlowChange,
  savedAt: string,
): StoredCheckpoint {
  return { checkpoint, savedAt, count: (before?.count ?? 0) + 1 };
}

/** Combines the changes of one flow into one append, for a direct write or a turn's settlement. */
export function flowStateChange(flow: string, changes: readonly FlowChange[]): StateChange {
  return { name: flowName(flow), append: { id: mintId(), entries: changes, initial: null } };
}

/** A checkpoint with its version. */
export interface CheckpointVersion extends StoredCheckpoint {
  readonly version: number;
}

/**
 * Returns the checkpoints in the document: its value and each batch, oldest first. Earlier ones have their own
 * documents.
 */
export function checkpointsIn({ value, version, batches }: StateDocument): readonly CheckpointVersion[] {
  const first = version - batches.length;
  return [...batches.keys(), batches.length].flatMap((count) => {
    const stored = valueOf({ value, batches: batches.slice(0, count) }, applyFlowChange);
    return stored ? { version: first + count, ...stored } : [];
  });
}

/**
 * Returns the writes needed before the oldest batches of a flow's document are folded. Versions that leave the document
 * get their own documents, and as many outdated ones are deleted.
 */
export function archiveChanges(flow: string, document: StateDocument, batches: number): readonly StateChange[] {
  const { version } = document;
  const folded = version - document.batches.length + batches;
  const checkpoints = checkpointsIn(document);
  const first = version + 1 - (checkpoints.at(-1)?.count ?? 0);
  const archived = checkpoints
    .filter((each) => each.version < folded && isKept(each.version, version))
    .map(({ version: of, ...stored }) => {
      const entries = [stored as unknown as JsonValue];
      return { name: flowVersionName(flow, of), append: { id: mintId(), entries, initial: null } };
    });
  const pruned = Array.from({ length: batches }, (_, index) => version - KEPT_VERSIONS - index)
    .filter((of) => of >= first)
    .map((of) => ({ name: flowVersionName(flow, of), append: { id: mintId(), entries: [], ttlMs: 0 } }));
  return [...archived, ...pruned];
}

/** Returns whether a version is kept after the latest one was saved. */
export function isKept(version: number, latest: number): boolean {
  return version > latest - KEPT_VERSIONS && version <= latest;
}

/** Returns the last entry: the document of an earlier version contains its latest write. */
export function applyArchived(_: StoredCheckpoint | null, entry: StoredCheckpoint): StoredCheckpoint | null {
  return entry;
}
