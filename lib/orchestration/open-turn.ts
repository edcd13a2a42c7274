import { applyEntry, type OrchestrationRules } from './apply-entry.js';
import {
  type OrchestrationEffect,
  type OrchestrationEntry,
  type StoredEntry,
  type TurnEntry,
  type TurnPart,
} from './orchestration-entry.js';
import { type OpenTurn, type SharingTurn, type StoredProgress, type ToolUse } from './orchestration-state.js';

/** The result of a stored entry. */
export interface StoredDecision {
  readonly progress: StoredProgress;
  readonly effects: readonly OrchestrationEffect[];
}

/**
 * Returns the result of a stored entry (FIX-88). Pure. Uses that a running turn has stored count for the admissions of
 * others. The progress without the turn is kept beside, because the turn may still fail.
 */
export function applyStored(
  before: StoredProgress,
  entry: StoredEntry,
  at: string,
  rules: OrchestrationRules,
): StoredDecision {
  // The turn emits its effects when it settles.
  if (entry.type === 'turn') return { progress: applyTurn(before, entry, at, rules), effects: [] };
  const { turn } = before;
  const { progress, effects } = applyEntry(before, entry, at, rules);
  if (!turn?.open) return { progress, effects };
  const isAdmitted = entry.type === 'admit' && progress.toolHistory !== before.toolHistory;
  const open = beside(turn.open, entry, isAdmitted, at, rules);
  return { progress: { ...progress, turn: { ...turn, open } }, effects };
}

/** Returns the progress as if the open turn failed now. Without an open turn, it is the same. */
export function withoutOpenTurn(progress: StoredProgress): StoredProgress {
  const { turn } = progress;
  if (!turn?.open) return progress;
  const { base, isNeeded } = turn.open;
  return { ...(isNeeded ? progress : base), turn: { fence: turn.fence } };
}

/** Returns the progress that an attempt of a turn starts from: without uses of earlier attempts, and with its undo. */
export function startOf(
  { id, undo = [] }: { readonly id: string; readonly undo?: readonly OrchestrationEntry[] },
  progress: StoredProgress,
  rules: OrchestrationRules,
): StoredProgress {
  const open = progress.turn?.open;
  const start = open?.id === id ? open.base : withoutTurn(withoutOpenTurn(progress));
  const now = new Date().toISOString();
  return undo.reduce<StoredProgress>((from, entry) => applyEntry(from, entry, now, rules).progress, start);
}

/** Marks entries as stored with the turn's first use. Until the turn has stored a use, the mark has no effect. */
export function storedParts(entries: readonly OrchestrationEntry[]): readonly TurnPart[] {
  return entries.map((entry): TurnPart => ({ ...entry, stored: true }));
}

/** Returns the uses of a turn that are stored before its settlement, without failed ones, by the id of their call. */
export function sharedUses(turnId: string, { turn, toolHistory }: StoredProgress): Map<string, ToolUse> {
  if (turn?.open?.id !== turnId) return new Map();
  const uses = toolHistory.filter((use) => use.turnId === turnId && use.outcome !== 'failed');
  return new Map(uses.flatMap((use) => (use.callId === undefined ? [] : [[use.callId, use] as const])));
}

/** Applies the entry of another writer to the progress without the turn. A use that was admitted is recorded there. */
function beside(
  open: OpenTurn,
  entry: OrchestrationEntry,
  isAdmitted: boolean,
  at: string,
  rules: OrchestrationRules,
): OpenTurn {
  if (entry.type !== 'admit') return { ...open, base: applyEntry(open.base, entry, at, rules).progress };
  if (!isAdmitted) return open;
  const { progress: alone } = applyEntry(open.base, entry, at, rules);
  if (alone.toolHistory !== open.base.toolHistory) return { ...open, base: alone, isFollowed: true };
  const { progress: base } = applyEntry(open.base, { ...entry, onViolation: 'warn' }, at, rules);
  return { ...open, base, isFollowed: true, isNeeded: true };
}

function applyTurn(
  before: StoredProgress,
  { turnId, fence, mode, entries }: TurnEntry,
  at: string,
  rules: OrchestrationRules,
): StoredProgress {
  if (before.turn && isLate(before.turn, fence, mode)) return before;
  // Only one turn of a session runs at a time: another open turn has ended without a worker.
  const known = before.turn?.open?.id === turnId ? before : withoutOpenTurn(before);
  // The turn has failed, or its last attempt used nothing.
  if (mode === 'end' && entries.length === 0) return { ...withoutOpenTurn(known), turn: { fence } };
  const all = withoutTurn(known);
  const opened = known.turn?.open ?? { id: turnId, base: all, isFollowed: false, isNeeded: false };
  const open = mode === 'restart' && canRestart(opened, entries) ? { ...opened, isFollowed: false } : opened;
  const [from, parts] = mode === 'add' ? [all, entries] : mergeInto(open, all, entries);
  const after = parts.reduce<StoredProgress>((progress, part) => applyEntry(progress, part, at, rules).progress, from);
  const turn: SharingTurn = mode === 'end' ? { fence } : { fence, open };
  return { ...after, turn };
}

/** Returns true for the write of an attempt that has lost the turn, or has ended. */
function isLate(last: SharingTurn, fence: number, mode: TurnEntry['mode']): boolean {
  return fence < last.fence || (fence === last.fence && !last.open && mode !== 'end');
}

/** Returns true if the turn may come after the uses that follow it, which are in `base`. An undo would remove them. */
function canRestart({ isNeeded }: OpenTurn, entries: readonly TurnPart[]): boolean {
  return !isNeeded && !entries.some(({ type }) => type === 'merge');
}

/**
 * Returns the progress that all entries of a turn are applied to, and those entries. Uses that others follow stay where
 * they are: the rest is added after them.
 */
function mergeInto(
  { base, isFollowed }: OpenTurn,
  all: StoredProgress,
  entries: readonly TurnPart[],
): [from: StoredProgress, parts: readonly TurnPart[]] {
  if (!isFollowed) return [base, entries];
  return [all, entries.filter((part) => !part.stored || isRepeatable(part))];
}

/**
 * Returns true if a stored entry of a turn may be applied again: uses are recognized by their ids, and the turn's own
 * tokens replace each other.
 */
export function isRepeatable(entry: OrchestrationEntry): boolean {
  return entry.type === 'tool' || (entry.type === 'tokens' && entry.turnId !== undefined);
}

export function withoutTurn({ turn: _, ...progress }: StoredProgress): StoredProgress {
  return progress;
}
