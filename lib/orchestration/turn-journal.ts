import { applyEntry, type OrchestrationRules } from './apply-entry.js';
import { isRepeatable } from './open-turn.js';
import { type OrchestrationEffect, type OrchestrationEntry, type TurnPart } from './orchestration-entry.js';
import { type OrchestrationProgress } from './orchestration-state.js';

/** A tool use in a turn. */
export type TurnUse = Extract<OrchestrationEntry, { type: 'tool' }>;

interface Item {
  /** `null` if dropped. */
  entry: OrchestrationEntry | null;
  effects: readonly OrchestrationEffect[];
}

/**
 * The entries that one attempt of a turn adds to its plan's state, in order, and the resulting progress.
 *
 * A use is added when it is admitted, so that it counts for later uses. The journal drops a use that fails: the
 * progress is then that of a turn without it, followed by the failure.
 */
export class TurnJournal {
  private readonly items: Item[] = [];
  private current: OrchestrationProgress;
  private changes = 0;
  /** The number of items that are stored already (FIX-88). */
  private stored = 0;
  /** The number of items that the start includes. */
  private included = 0;

  constructor(
    private start: OrchestrationProgress,
    private readonly rules: OrchestrationRules,
  ) {
    this.current = start;
  }

  get progress(): OrchestrationProgress {
    return this.current;
  }

  /** The current end of the journal, for {@link since}. */
  get length(): number {
    return this.items.length;
  }

  /** Increases when a use is dropped, or the start changes. */
  get revision(): number {
    return this.changes;
  }

  get effects(): readonly OrchestrationEffect[] {
    return this.items.flatMap(({ effects }) => effects);
  }

  since(mark: number): readonly OrchestrationEntry[] {
    return this.items.slice(mark).flatMap(({ entry }) => entry ?? []);
  }

  /** Returns the entries that are not stored yet. */
  unstored(): readonly OrchestrationEntry[] {
    return this.since(this.stored);
  }

  /** Marks the entries before a {@link length} as stored. */
  store(length: number): void {
    this.stored = Math.max(this.stored, length);
  }

  /** Marks no entry as stored. */
  unstore(): void {
    this.stored = 0;
  }

  /** True if a use that did not fail is stored. */
  get hasStored(): boolean {
    const stored = this.items.slice(0, this.stored);
    return stored.some(({ entry }) => entry?.type === 'tool' && entry.outcome !== 'failed');
  }

  isStored(use: TurnUse): boolean {
    return this.items.indexOf(this.itemOf(use)) < this.stored;
  }

  /** Returns all entries, and marks those that are stored. The store recognizes uses by their ids. */
  parts(): readonly TurnPart[] {
    const marked = (entry: OrchestrationEntry, index: number): TurnPart =>
      index < this.stored && entry.type !== 'tool' ? { ...entry, stored: true } : entry;
    return this.items.flatMap(({ entry }, index) => (entry ? marked(entry, index) : []));
  }

  /**
   * Applies the entries to another start, because others have changed the state.
   * @param includesStored true if the start includes the stored entries, at their place among those of others
   */
  rebase(start: OrchestrationProgress, includesStored = false): void {
    this.start = start;
    this.included = includesStored ? this.stored : 0;
    this.recompute();
  }

  /** Returns the progress as if the entry were added. */
  preview(entry: OrchestrationEntry): OrchestrationProgress {
    return applyEntry(this.current, entry, new Date().toISOString(), this.rules).progress;
  }

  add(entry: OrchestrationEntry): void {
    this.items.push({ entry, effects: this.apply(entry) });
  }

  /** Returns true if the use activated another step. */
  changedStep(use: TurnUse): boolean {
    return this.itemOf(use).effects.some(({ type }) => type === 'step-changed');
  }

  succeed(use: TurnUse): void {
    const item = this.itemOf(use);
    const { tool, callId, turnId } = use;
    item.entry = { ...use, outcome: 'succeeded' };
    item.effects = item.effects.map((effect) =>
      effect.type === 'tool-recorded' ? { ...effect, outcome: 'succeeded' } : effect,
    );
    const toolHistory = [...this.current.toolHistory];
    // Searches from the end: the use is one of the newest, unless the history no longer contains it.
    for (let at = toolHistory.length - 1; at >= 0; at -= 1) {
      const each = toolHistory[at];
      if (each.callId !== callId || each.turnId !== turnId || each.tool !== tool || each.outcome !== 'admitted')
        continue;
      const { moved: _, ...about } = each;
      toolHistory[at] = { ...about, outcome: 'succeeded' };
      this.current = { ...this.current, toolHistory };
      return;
    }
  }

  /**
   * Drops the use and the evaluations since, and adds the failure.
   * @param facts of the state with the failure; `undefined` if the step is evaluated afterwards
   */
  fail(use: TurnUse, facts: TurnUse['facts']): void {
    this.drop(use);
    const { facts: _, ...about } = use;
    this.add({ ...about, outcome: 'failed', ...(facts ? { facts } : {}) });
  }

  /** Drops the use and the evaluations since. */
  drop(use: TurnUse): void {
    const first = this.items.indexOf(this.itemOf(use));
    this.items.forEach((item, index) => {
      if (index !== first && (index < first || item.entry?.type !== 'evaluate')) return;
      item.entry = null;
      item.effects = [];
    });
    this.recompute();
  }

  private recompute(): void {
    this.changes += 1;
    this.current = this.start;
    this.items.forEach((item, index) => {
      if (!item.entry) return;
      if (index >= this.included) item.effects = this.apply(item.entry);
      // Adds the outcome, which may be newer. The effects were computed when the entry was added.
      else if (isRepeatable(item.entry)) this.apply(item.entry);
    });
  }

  private itemOf(use: TurnUse): Item {
    return this.items.find(({ entry }) => entry === use)!;
  }

  private apply(entry: OrchestrationEntry): readonly OrchestrationEffect[] {
    // The store sets the time when the turn settles.
    const { progress, effects } = applyEntry(this.current, entry, new Date().toISOString(), this.rules);
    this.current = progress;
    return effects;
  }
}
