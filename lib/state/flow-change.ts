import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { type FoldAt, valueOf } from './module-document.js';
import { namespaceOf } from '../ledger/module-namespace.js';
import { type StateChange, type StateDocument, type StateName } from '../ledger/state.store.js';

/** Where checkpoints of flows are kept, and nothing else may be. */
export const FLOW_NAMESPACE = namespaceOf('flow');

/** Versions of a flow that are kept. */
export const KEPT_VERSIONS = 100;

/** Checkpoints may be large, and each is a batch. */
export const FOLD_FLOW_AT: FoldAt = { batches: 8, keep: 2 };

/** What the document of a flow holds: its latest checkpoint. */
export interface StoredCheckpoint {
  readonly checkpoint: JsonValue;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
  /** How many were saved of the flow, this one included. */
  readonly count: number;
}

/** A change of a flow, as it is stored. What one append holds is one version. */
export type FlowChange = { readonly type: 'save'; readonly checkpoint: JsonValue };

/** The document whose version is that of the latest checkpoint. */
export function flowName(flow: string): StateName {
  return { namespace: FLOW_NAMESPACE, scope: '', key: flow };
}

/** Of an earlier version. They stand in order. */
export function flowVersionName(flow: string, version: number): StateName {
  return { namespace: FLOW_NAMESPACE, scope: flow, key: String(version).padStart(16, '0') };
}

/** What a change makes of a flow. Pure. */
export function applyFlowChange(
  before: StoredCheckpoint | null,
  { checkpoint }: FlowChange,
  savedAt: string,
): StoredCheckpoint {
  return { checkpoint, savedAt, count: (before?.count ?? 0) + 1 };
}

/** The changes of one flow as one append, at once or in a turn's settlement. */
export function flowStateChange(flow: string, changes: readonly FlowChange[]): StateChange {
  return { name: flowName(flow), append: { id: mintId(), entries: changes, initial: null } };
}

/** A checkpoint that a document of a flow has by itself. */
export interface CheckpointVersion extends StoredCheckpoint {
  readonly version: number;
}

/** The value and each of the batches, the oldest first; those before them stand in documents of their own. */
export function checkpointsIn({ value, version, batches }: StateDocument): readonly CheckpointVersion[] {
  const first = version - batches.length;
  return [...batches.keys(), batches.length].flatMap((count) => {
    const stored = valueOf({ value, batches: batches.slice(0, count) }, applyFlowChange);
    return stored ? { version: first + count, ...stored } : [];
  });
}

/**
 * What must be written before the oldest batches of a flow's document are folded: the versions that are not in it afterwards stand in
 * documents of their own, and as many that have become too old go.
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

/** Whether a version is kept when there is a later one. */
export function isKept(version: number, latest: number): boolean {
  return version > latest - KEPT_VERSIONS && version <= latest;
}

/** The document of an earlier version holds what was written last. */
export function applyArchived(_: StoredCheckpoint | null, entry: StoredCheckpoint): StoredCheckpoint | null {
  return entry;
}
