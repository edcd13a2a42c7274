import { applyEntry, type OrchestrationRules } from './apply-entry.js';
import { type OrchestrationEffect, type OrchestrationEntry } from './orchestration-entry.js';
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
  private dropped = 0;

  constructor(
    private readonly start: OrchestrationProgress,
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

  /** The number of uses that were dropped. */
  get revision(): number {
    return this.dropped;
  }

  get effects(): readonly OrchestrationEffect[] {
    return this.items.flatMap(({ effects }) => effects);
  }

  since(mark: number): readonly OrchestrationEntry[] {
    return this.items.slice(mark).flatMap(({ entry }) => entry ?? []);
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
      toolHistory[at] = { ...each, outcome: 'succeeded' };
      this.current = { ...this.current, toolHistory };
      return;
    }
  }

  /** Drops the use and the evaluations since, and adds the failure. */
  fail(use: TurnUse): void {
    const first = this.items.indexOf(this.itemOf(use));
    this.dropped += 1;
    this.current = this.start;
    this.items.forEach((item, index) => {
      if (index === first || (index > first && item.entry?.type === 'evaluate')) item.entry = null;
      item.effects = item.entry ? this.apply(item.entry) : [];
    });
    this.add({ ...use, outcome: 'failed' });
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
