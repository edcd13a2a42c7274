import { type JsonObject, type JsonValue } from '../common/json.js';
import { HEAD } from '../conversation/conversation-head.js';
import { type StateChange, type StateDocument } from '../ledger/state.store.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { storedParts } from '../orchestration/open-turn.js';
import { type OrchestrationEntry, type StoredEntry, type TurnEntry } from '../orchestration/orchestration-entry.js';
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
  /** The state before the replaced turns, after drift checks and migrations. */
  readonly state: JsonObject;
  /** Restores the plan's progress, as part of the turn: uses outside of the turn may follow it (FIX-88). */
  readonly plan: StateChange | undefined;
  /** Stops the use of a summary that covers undone messages. */
  readonly head: readonly StateChange[];
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
  const head = changes.filter(isOfHead);
  // Without its document, the plan has no progress to restore.
  const plan = documents.plan ? changes.find((change) => !isOfHead(change)) : undefined;
  return {
    claimed: { ...claimed, checkpoint: { ...checkpoint, turnIndex: latest, savedAt: claimed.turn.acceptedAt } },
    documents: { plan: documents.plan, head: withChanges(documents.head, head) },
    replacement: { turnId, parent: before?.turnIndex, state: checkpoint.state, plan, head },
  };
}

/** Returns the entries that restore the plan's progress. */
export function undoOfPlan(replacement: Replacement | undefined): readonly OrchestrationEntry[] {
  return (replacement?.plan?.append.entries ?? []) as unknown as readonly OrchestrationEntry[];
}

/** Adds the replacement to the settlement of a stopped turn, with the state and plan from before the replaced turns. */
export function withReplacement(settlement: TurnSettlement, stopped: TurnToRun): TurnSettlement {
  const { replacement } = stopped;
  const { turn, checkpoint } = stopped.claimed;
  if (!replacement || !checkpoint) return settlement;
  const { savedAt: _, parent: __, ...before } = checkpoint;
  const { turnId, parent, head } = replacement;
  return {
    ...settlement,
    checkpoint: {
      ...before,
      turnIndex: before.turnIndex + 1,
      turnId: turn.id,
      replaces: turnId,
      ...(parent === undefined ? {} : { parent }),
    },
    stateChanges: [...head, ...withPlanOf(stopped, settlement.stateChanges ?? [])],
  };
}

/** Puts the undo of the plan into the entry that ends the turn. The document has at most one change. */
function withPlanOf({ claimed, replacement }: TurnToRun, changes: readonly StateChange[]): readonly StateChange[] {
  const plan = replacement?.plan;
  if (!plan) return changes;
  const known = changes.find((change) => isSame(change, plan));
  const others = (known?.append.entries ?? []) as unknown as readonly StoredEntry[];
  const { turnId, fence } = claimed.hold;
  const end: TurnEntry = { type: 'turn', turnId, fence, mode: 'end', entries: storedParts(undoOfPlan(replacement)) };
  const entries = [...others.filter(({ type }) => type !== 'turn'), end] as unknown as readonly JsonValue[];
  const { name, append } = known ?? plan;
  return [...changes.filter((change) => change !== known), { name, append: { ...append, entries } }];
}

function isSame(a: StateChange, b: StateChange): boolean {
  return a.name.namespace === b.name.namespace && a.name.scope === b.name.scope && a.name.key === b.name.key;
}

function isOfHead({ name }: StateChange): boolean {
  return name.namespace === HEAD.namespace;
}

function withChanges(document: StateDocument | null, changes: readonly StateChange[]): StateDocument | null {
  if (!document) return null;
  const batches = changes.map(({ append: { id, entries } }) => ({ id, entries, at: document.accessedAt }));
  return { ...document, batches: [...document.batches, ...batches] };
}
