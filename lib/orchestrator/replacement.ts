import { HEAD } from '../conversation/conversation-head.js';
import { type StateChange, type StateDocument } from '../ledger/state.store.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type LoadState, type Rewind } from './rewind.js';
import { type TurnDocuments } from './turn-parts.js';

/**
 * What a turn starts from if it replaces earlier ones (AIS-07): it undoes them in the commit that settles it,
 * unless no message of it stays.
 */
export interface Replacement {
  /** The id of the first replaced turn. */
  readonly turnId: string;
  /** The index of the checkpoint before the replaced turns; undefined before the first turn. */
  readonly parent: number | undefined;
  /** The changes of the undo, which the turn stores before its own. */
  readonly changes: readonly StateChange[];
}

/** A turn to run, and the state documents that it was claimed with. */
export interface TurnToRun {
  readonly claimed: ClaimedTurn;
  readonly documents: TurnDocuments;
  readonly replacement?: Replacement;
}

/** Returns the turn to run as if the turns that it replaces had been undone. */
export async function replacing(
  turnId: string,
  rewind: Rewind,
  definition: OrchestratorDefinition,
  { claimed, documents }: TurnToRun,
  load: LoadState,
): Promise<TurnToRun> {
  const { before, checkpoint, changes } = await rewind.from(turnId, definition, claimed, load);
  const latest = claimed.checkpoint?.turnIndex ?? -1;
  const ofHead = changes.filter(isOfHead);
  // Without its document, the plan has no progress to restore.
  const ofPlan = documents.plan ? changes.filter((change) => !isOfHead(change)) : [];
  return {
    claimed: { ...claimed, checkpoint: { ...checkpoint, turnIndex: latest, savedAt: claimed.turn.acceptedAt } },
    documents: { plan: withChanges(documents.plan, ofPlan), head: withChanges(documents.head, ofHead) },
    replacement: { turnId, parent: before?.turnIndex, changes: [...ofPlan, ...ofHead] },
  };
}

/** Puts the changes of an undo before those of the turn, at most one per document. */
export function withUndo(undo: readonly StateChange[], changes: readonly StateChange[]): readonly StateChange[] {
  const isSame = (a: StateChange, b: StateChange): boolean =>
    a.name.namespace === b.name.namespace && a.name.scope === b.name.scope && a.name.key === b.name.key;
  const merged = changes.map((change) => {
    const first = undo.find((each) => isSame(each, change));
    if (!first) return change;
    return { ...change, append: { ...change.append, entries: [...first.append.entries, ...change.append.entries] } };
  });
  return [...undo.filter((each) => !changes.some((change) => isSame(each, change))), ...merged];
}

/** Adds the replacement to the settlement of a stopped turn, with the state and plan from before the replaced turns. */
export function withReplacement(
  settlement: TurnSettlement,
  { claimed: { turn, checkpoint }, replacement }: TurnToRun,
): TurnSettlement {
  if (!replacement || !checkpoint) return settlement;
  const { savedAt: _, parent: __, ...before } = checkpoint;
  const { turnId, parent, changes } = replacement;
  return {
    ...settlement,
    checkpoint: {
      ...before,
      turnIndex: before.turnIndex + 1,
      turnId: turn.id,
      replaces: turnId,
      ...(parent === undefined ? {} : { parent }),
    },
    stateChanges: withUndo(changes, settlement.stateChanges ?? []),
  };
}

function isOfHead({ name }: StateChange): boolean {
  return name.namespace === HEAD.namespace;
}

function withChanges(document: StateDocument | null, changes: readonly StateChange[]): StateDocument | null {
  if (!document) return null;
  const batches = changes.map(({ append: { id, entries } }) => ({ id, entries, at: document.accessedAt }));
  return { ...document, batches: [...document.batches, ...batches] };
}
