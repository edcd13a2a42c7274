import { type JsonValue } from '../common/json.js';
import { type StateBatch, type StateDocument, type StateFold } from '../ledger/state.store.js';
import { type OrchestrationRules } from './apply-entry.js';
import { applyStored, type StoredDecision, withoutOpenTurn } from './open-turn.js';
import {
  assertKnownEntry,
  type OrchestrationEffect,
  type OrchestrationEntry,
  type StoredEntry,
} from './orchestration-entry.js';
import { NO_PROGRESS, type OrchestrationState, shownProgress, type StoredProgress } from './orchestration-state.js';

/** A document is folded when it has this many batches or entries, because each read applies all of them. */
const FOLD_AT_BATCHES = 32;
const FOLD_AT_ENTRIES = 100;
/** The number of newest batches that are kept. An append is idempotent while its batch is stored. */
const KEEP_BATCHES = 8;

/** Computes the state of a document: its value, with all appended entries applied in order. */
export function readState(sessionId: string, document: StateDocument, rules: OrchestrationRules): OrchestrationState {
  return describe(sessionId, document, progressOf(document, rules));
}

export function progressOf({ value, batches }: StateDocument, rules: OrchestrationRules): StoredProgress {
  return batches.reduce<StoredProgress>(
    (progress, batch) => applyBatch(progress, batch, rules).progress,
    fromValue(value),
  );
}

/**
 * Returns the current state, the progress right before and after the batch with this id, and the effects of the batch;
 * the current progress and no effects if the batch is missing.
 */
export function readStateWith(
  id: string,
  sessionId: string,
  document: StateDocument,
  rules: OrchestrationRules,
): {
  readonly state: OrchestrationState;
  readonly before: StoredProgress;
  readonly after: StoredProgress;
  readonly effects: readonly OrchestrationEffect[];
} {
  let progress = fromValue(document.value);
  let before: StoredProgress | undefined;
  let after: StoredProgress | undefined;
  let effects: readonly OrchestrationEffect[] = [];
  for (const batch of document.batches) {
    const decision = applyBatch(progress, batch, rules);
    if (batch.id === id) {
      before = progress;
      ({ effects, progress: after } = decision);
    }
    progress = decision.progress;
  }
  const state = describe(sessionId, document, progress);
  return { state, before: before ?? progress, after: after ?? progress, effects };
}

/** Returns a fold that shortens the document without changing its state; `null` if it is short. */
export function foldOf(document: StateDocument, rules: OrchestrationRules): StateFold | null {
  const { value, batches } = document;
  const folded = batches.slice(0, -KEEP_BATCHES);
  const last = folded.at(-1);
  const entries = batches.reduce((sum, batch) => sum + entriesOf(batch).length, 0);
  if (!last || (batches.length < FOLD_AT_BATCHES && entries < FOLD_AT_ENTRIES)) return null;
  return {
    through: last.id,
    value: toValue(progressOf({ ...document, value, batches: folded }, rules)),
  };
}

interface StoredOrigin {
  readonly createdBy?: string;
}

/** @param createdBy the append that creates the document, see {@link isCreatedBy} */
export function toValue(progress: StoredProgress, createdBy?: string): JsonValue {
  const { activeStep, recentlyUsedTools, toolHistory, sequenceIndex, progress: left, cumulativeTokenUsage } = progress;
  const { lastTurn, turn } = progress;
  const value = { recentlyUsedTools, toolHistory, sequenceIndex, progress: left, cumulativeTokenUsage };
  return {
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(activeStep === undefined ? {} : { activeStep }),
    ...value,
    ...(lastTurn ? { lastTurn } : {}),
    ...(turn ? { turn } : {}),
  } as unknown as JsonValue;
}

/** Returns true if this append created the document. The first fold removes this information. */
export function isCreatedBy({ value }: StateDocument, id: string): boolean {
  return (value as StoredOrigin | null)?.createdBy === id;
}

/** Returns the signatures of the plans that are needed to read the document. */
export function plansIn({ batches }: StateDocument): ReadonlySet<string> {
  return new Set(batches.flatMap(entriesOf).flatMap((entry) => ('plan' in entry ? (entry.plan ?? []) : [])));
}

/** Returns the entries of a batch, and those in its entries of turns. */
function entriesOf({ entries }: StateBatch): readonly OrchestrationEntry[] {
  return (entries as unknown as readonly StoredEntry[]).flatMap((entry) =>
    entry.type === 'turn' ? entry.entries : entry,
  );
}

function applyEntries(
  progress: StoredProgress,
  entries: readonly StoredEntry[],
  at: string,
  rules: OrchestrationRules,
): StoredDecision {
  let decision: StoredDecision = { progress, effects: [] };
  for (const entry of entries) {
    assertKnownEntry(entry);
    const { progress: next, effects } = applyStored(decision.progress, entry, at, rules);
    decision = { progress: next, effects: [...decision.effects, ...effects] };
  }
  return decision;
}

function applyBatch(progress: StoredProgress, { entries, at }: StateBatch, rules: OrchestrationRules): StoredDecision {
  return applyEntries(progress, entries as unknown as readonly StoredEntry[], at, rules);
}

/** Describes the state without the uses of a turn that has not settled. */
function describe(
  sessionId: string,
  { version, accessedAt, expiresAt }: StateDocument,
  progress: StoredProgress,
): OrchestrationState {
  const lastAccessed = Date.parse(accessedAt);
  return {
    sessionId,
    ...shownProgress(withoutOpenTurn(progress)),
    version,
    lastAccessed,
    ttl: expiresAt === undefined ? 'never' : Date.parse(expiresAt) - lastAccessed,
  };
}

/** Reads a stored value. Other writers may have stored incomplete values, so defaults are added. */
export function fromValue(value: JsonValue): StoredProgress {
  const { createdBy: _, ...progress } = (value ?? {}) as unknown as Partial<StoredProgress> & StoredOrigin;
  return { ...NO_PROGRESS, ...progress };
}
