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
  /** The effects to emit now. A turn emits its own when it settles. */
  readonly effects: readonly OrchestrationEffect[];
}

/**
 * Returns the result of a stored entry (FIX-88). Pure.
 *
 * A running turn stores uses before it settles, so that other admissions count them. If it fails, they no longer count.
 * So the progress includes the uses of the open turn, and `progress.turn.open.base` is the progress without them.
 * An entry from outside of the turn is applied to both.
 *
 * Example: a sequence is `look, pay`. An open turn has used `look`, so `admitTool` now rejects `look` and admits `pay`.
 * If the turn fails before `pay` is admitted, `base` applies, and `look` is next again. If it fails afterwards, its
 * `look` counts, because `pay` needs it.
 */
export function applyStored(
  before: StoredProgress,
  entry: StoredEntry,
  at: string,
  rules: OrchestrationRules,
): StoredDecision {
  if (entry.type === 'turn') return { progress: applyTurn(before, entry, at, rules), effects: [] };
  const { turn } = before;
  const { progress, effects } = applyEntry(before, entry, at, rules);
  if (!turn?.open) return { progress, effects };
  const isAdmitted = entry.type === 'admit' && progress.toolHistory !== before.toolHistory;
  const open = applyToBase(turn.open, entry, isAdmitted, at, rules);
  return { progress: { ...progress, turn: { ...turn, open } }, effects };
}

/**
 * Returns the progress as if the open turn failed now: its uses do not count, unless a use outside of it needs them.
 * Without an open turn, it is the same.
 */
export function withoutOpenTurn(progress: StoredProgress): StoredProgress {
  const { turn } = progress;
  if (!turn?.open) return progress;
  const { base, isNeeded } = turn.open;
  return { ...(isNeeded ? progress : base), turn: { fence: turn.fence } };
}

/**
 * Returns the progress that an attempt of a turn starts from: without uses of earlier attempts, which it adds again
 * when it reaches their calls. `undo` contains the entries that reverse the turns which it replaces (AIS-07).
 */
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

/**
 * Marks entries that a turn stores with its first use, such as its undo. The mark has no effect in a turn without
 * stored uses: it matters only if a use outside of the turn followed one of them.
 */
export function storedParts(entries: readonly OrchestrationEntry[]): readonly TurnPart[] {
  return entries.map((entry): TurnPart => ({ ...entry, stored: true }));
}

/** Returns the uses of a turn that are stored before its settlement, without failed ones, by the id of their call. */
export function sharedUses(turnId: string, { turn, toolHistory }: StoredProgress): Map<string, ToolUse> {
  if (turn?.open?.id !== turnId) return new Map();
  const uses = toolHistory.filter((use) => use.turnId === turnId && use.outcome !== 'failed');
  return new Map(uses.flatMap((use) => (use.callId === undefined ? [] : [[use.callId, use] as const])));
}

/**
 * Applies an entry from outside of the turn to its `base`. A use that the full progress has admitted is always recorded
 * there. If `base` alone would reject it, it needs uses of the turn, and is recorded with `warn`.
 * @param isAdmitted whether the entry is a use that was admitted
 */
function applyToBase(
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

/** Returns the progress after the entries of a turn. {@link TurnEntry} describes the modes. */
function applyTurn(
  before: StoredProgress,
  { turnId, fence, mode, entries }: TurnEntry,
  at: string,
  rules: OrchestrationRules,
): StoredProgress {
  if (before.turn && isLate(before.turn, fence, mode)) return before;
  // A session runs one turn at a time. If another turn is open here, it has ended without an `end` entry, for example
  // because the store cancelled it between two attempts. It counts as failed.
  const known = before.turn?.open?.id === turnId ? before : withoutOpenTurn(before);
  // The turn has failed, or its last attempt used nothing.
  if (mode === 'end' && entries.length === 0) return { ...withoutOpenTurn(known), turn: { fence } };
  // With the uses that the turn has stored so far.
  const current = withoutTurn(known);
  const opened = known.turn?.open ?? { id: turnId, base: current, isFollowed: false, isNeeded: false };
  const open = mode === 'restart' && canRestart(opened, entries) ? { ...opened, isFollowed: false } : opened;
  const [from, parts] = mode === 'add' ? [current, entries] : placeEntries(open, current, entries);
  const after = parts.reduce<StoredProgress>((progress, part) => applyEntry(progress, part, at, rules).progress, from);
  const turn: SharingTurn = mode === 'end' ? { fence } : { fence, open };
  return { ...after, turn };
}

/**
 * Returns true for the write of an attempt that has lost the turn, or has ended. An `end` is not late at its own fence,
 * because the store commits a settlement only once.
 */
function isLate(last: SharingTurn, fence: number, mode: TurnEntry['mode']): boolean {
  return fence < last.fence || (fence === last.fence && !last.open && mode !== 'end');
}

/**
 * Returns true if the uses of the turn may move behind the uses that followed them, which `base` contains. They must
 * not move if one of those needs them, or if the turn has an undo (a `merge`), which would overwrite those uses.
 */
function canRestart({ isNeeded }: OpenTurn, entries: readonly TurnPart[]): boolean {
  return !isNeeded && !entries.some(({ type }) => type === 'merge');
}

/**
 * Decides where all entries of a turn are applied. Usually they are applied to `base`, so they replace what the turn
 * has stored. If a use outside of the turn followed, stored entries keep their place in `current`. Then only new ones
 * are applied, and repeatable ones, whose outcome may be newer.
 * @returns the progress to start from, and the entries to apply to it
 */
function placeEntries(
  { base, isFollowed }: OpenTurn,
  current: StoredProgress,
  entries: readonly TurnPart[],
): [from: StoredProgress, parts: readonly TurnPart[]] {
  if (!isFollowed) return [base, entries];
  return [current, entries.filter((part) => !part.stored || isRepeatable(part))];
}

/**
 * Returns true if a stored entry of a turn may be applied again: uses are recognized by their ids, and the turn's own
 * tokens replace each other.
 */
export function isRepeatable(entry: OrchestrationEntry): boolean {
  return entry.type === 'tool' || (entry.type === 'tokens' && entry.turnId !== undefined);
}

/** Removes only the field `turn`. The uses of an open turn stay, unlike with {@link withoutOpenTurn}. */
export function withoutTurn({ turn: _, ...progress }: StoredProgress): StoredProgress {
  return progress;
}
