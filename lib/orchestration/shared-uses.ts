import { mintId } from '../common/ids.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { SessionStateError } from '../ledger/session.errors.js';
import { TurnFencedError } from '../ledger/turn.errors.js';
import { type AgentOrchestration, type Appended } from './agent-orchestration.js';
import { type OrchestrationRules } from './apply-entry.js';
import { applyStored, sharedUses, startOf, storedParts, withoutTurn } from './open-turn.js';
import { type OrchestrationEntry, type TurnEntry, type TurnPart } from './orchestration-entry.js';
import { NO_PROGRESS, shownProgress, type StoredProgress, type ToolUse } from './orchestration-state.js';
import { type ToolNotAllowedError } from './orchestration.errors.js';
import { type StepPlan } from './step-plan.js';
import { hasPredicates } from './step-predicates.js';
import { isLimited } from './tool-limits.js';
import { refusalOf } from './tool-refusal.js';
import { type TurnJournal, type TurnUse } from './turn-journal.js';

/** The attempt that stores uses. */
export interface SharingAttempt {
  /** The id of the turn. */
  readonly id: string;
  readonly sessionId: string;
  readonly fence: number;
  /** Makes a store call for the attempt, see `AttemptHandle.write`. */
  readonly write: <T>(call: () => Promise<T>) => Promise<T>;
  /** The entries of an undo that the turn stores with its first use or its settlement, before its own. Default: none. */
  readonly undo?: readonly OrchestrationEntry[];
}

/** The stored state at the start of an attempt. */
export interface KnownState {
  readonly progress: StoredProgress;
  /** 0 if the state does not exist. */
  readonly version: number;
}

/**
 * The uses that an attempt of a turn stores before they begin (FIX-88), because a use outside of the turn may be
 * admitted at the same time. These are the uses that the plan limits. Each takes one round trip.
 */
export class SharedUses {
  /** The uses that earlier attempts have stored and that this attempt has not reached, by the id of their call. */
  private readonly earlier: Map<string, ToolUse>;
  private isAnyOpen: boolean;
  private isAnyStored = false;
  private isUnanswered = false;
  /** Resolves when the last store call has ended. */
  private last: Promise<unknown> = Promise.resolve();
  /** The entries of the undo, until they are stored with the first use. */
  private undo: readonly OrchestrationEntry[];
  private version: number;
  /** The progress in the newest state that this attempt knows. */
  private latest: StoredProgress;

  constructor(
    private readonly attempt: SharingAttempt,
    private readonly plan: StepPlan,
    private readonly states: AgentOrchestration,
    private readonly rules: OrchestrationRules,
    private readonly journal: TurnJournal,
    { progress, version }: KnownState,
  ) {
    this.earlier = sharedUses(attempt.id, progress);
    this.isAnyOpen = progress.turn?.open !== undefined;
    // An earlier attempt has stored the undo with its first use.
    this.undo = progress.turn?.open?.id === attempt.id ? [] : (attempt.undo ?? []);
    this.version = version;
    this.latest = progress;
  }

  /** True if the stored state contains uses of a turn that has not settled: of this turn, or of one that was lost. */
  get isOpen(): boolean {
    return this.isAnyOpen;
  }

  /** True if this attempt has stored a use. */
  get hasStored(): boolean {
    return this.isAnyStored;
  }

  /** True if the last store call has no answer: it may still create the state, also after the turn has ended. */
  get isUncertain(): boolean {
    return this.isUnanswered;
  }

  /** Returns true if an earlier attempt has stored the use. It may have begun: it is not rejected or counted again. */
  isStored(tool: string, callId: string): boolean {
    return this.earlier.get(callId)?.tool === tool;
  }

  /** Returns true if the use must be stored before it begins. */
  isNeeded(tool: string): boolean {
    return isLimited(this.plan, tool);
  }

  /** Called when the journal contains a use. Does nothing unless an earlier attempt has stored it. */
  reached({ tool, callId }: TurnUse): void {
    if (callId === undefined || !this.isStored(tool, callId)) return;
    this.earlier.delete(callId);
    this.journal.store(this.journal.length);
    if (this.isFollowed) this.rebase(this.latest);
  }

  /**
   * Adds a use to the journal and stores it, with the entries before it that are not stored yet. The use is admitted
   * unless uses outside of the turn came first.
   * @param revision the journal's when the plan was checked and its predicates were evaluated
   * @returns false if the journal or the state was changed meanwhile: check and evaluate again. The journal is then
   * without the use
   * @throws ToolNotAllowedError, without the use in the journal
   */
  share(use: TurnUse, revision: number): Promise<boolean> {
    return this.inOrder(async () => revision === this.journal.revision && (await this.add(use)));
  }

  /** Stores the uses again, without those that failed. */
  shareAgain(): Promise<void> {
    return this.inOrder(() => this.replace('replace'));
  }

  /**
   * Returns the entries that settle the turn. They remove the uses of earlier attempts that this one has not repeated,
   * unless a use outside of the turn needs them.
   * @param entries all entries of the turn
   */
  settle(entries: readonly TurnPart[]): readonly TurnEntry[] {
    const undo = storedParts(this.attempt.undo ?? []);
    const end = this.entry('end', [...undo, ...entries]);
    if (this.earlier.size === 0) return [end];
    const restart = this.entry('restart', undo);
    this.earlier.clear();
    this.latest = applyStored(this.latest, restart, new Date().toISOString(), this.rules).progress;
    this.rebase(this.latest);
    return [restart, end];
  }

  /** Returns the entry that ends a turn which failed or was cancelled. */
  withdraw(): TurnEntry {
    return this.entry('end', []);
  }

  private async add(use: TurnUse): Promise<boolean> {
    const { plan, journal, earlier } = this;
    journal.add(use);
    const { length } = journal;
    const entries = journal.unstored().map((entry) => (entry === use ? toAdmission(use, plan) : entry));
    let appended: Appended | null;
    try {
      const ifVersion = hasPredicates(plan) ? this.version : undefined;
      appended = await this.store('add', [...this.undo, ...entries], ifVersion);
    } catch (error) {
      // No use outside of the turn is admitted any more.
      if (SessionStateError.isInstance(error)) return true;
      journal.drop(use);
      throw error;
    }
    if (!appended) {
      journal.drop(use);
      return false;
    }
    const wasStored = journal.hasStored;
    this.stored(length);
    const uses = sharedUses(this.attempt.id, appended.after);
    if (uses.get(use.callId!)?.tool === use.tool) return true;
    journal.drop(use);
    if (earlier.size > 0 && !this.refusalIn(journal.progress, use.tool)) {
      // An earlier attempt may have made the same call under another id.
      earlier.clear();
      await this.replace('restart');
      return false;
    }
    if (!wasStored || uses.size > 0) throw this.refusal(use.tool, appended.after);
    // The state was reset or removed meanwhile: all uses of the turn are stored again.
    journal.unstore();
    this.undo = this.attempt.undo ?? [];
    return false;
  }

  private async replace(mode: 'replace' | 'restart'): Promise<void> {
    const { journal, attempt, plan, earlier } = this;
    const { length } = journal;
    const rest = [...earlier.values()].map(({ tool, callId }): TurnUse => {
      const { id: turnId } = attempt;
      return { type: 'tool', tool, callId, turnId, outcome: 'admitted', plan: plan.signature, facts: [] };
    });
    const parts = [...storedParts(attempt.undo ?? []), ...journal.parts(), ...rest];
    if (await this.store(mode, parts)) this.stored(length);
  }

  /** True if uses outside of the turn follow its stored uses, all of which are in the journal. */
  private get isFollowed(): boolean {
    const open = this.latest.turn?.open;
    return open?.id === this.attempt.id && open.isFollowed && this.earlier.size === 0;
  }

  /**
   * Applies the journal to a state that others have changed. Uses of the turn that others follow keep their place.
   * @param stored the progress with the stored entries of the journal
   */
  private rebase(stored: StoredProgress): void {
    const { journal, attempt } = this;
    if (this.isFollowed) journal.rebase(withoutTurn(stored), true);
    else journal.rebase(startOf(attempt, this.latest, this.rules));
  }

  /** @param length of the journal when its entries were sent */
  private stored(length: number): void {
    this.journal.store(length);
    this.undo = [];
  }

  /** Store calls are made one after the other: each depends on the journal, which the one before may change. */
  private inOrder<T>(work: () => Promise<T>): Promise<T> {
    const run = this.last.then(work);
    this.last = run.catch(() => undefined);
    return run;
  }

  private entry(mode: TurnEntry['mode'], entries: readonly TurnPart[]): TurnEntry {
    const { id: turnId, fence } = this.attempt;
    return { type: 'turn', turnId, fence, mode, entries };
  }

  /**
   * Stores entries of the turn. If others have changed the state, the journal continues from there.
   * @returns `null` if the state has another version than expected
   */
  private async store(
    mode: 'add' | 'replace' | 'restart',
    entries: readonly TurnPart[],
    ifVersion?: number,
  ): Promise<Appended | null> {
    const { states, attempt } = this;
    this.isAnyOpen = true;
    const id = mintId();
    const entry = this.entry(mode, entries);
    const append = (): Promise<Appended | null> => states.appendOfTurn(attempt.sessionId, entry, { id, ifVersion });
    const appended = await attempt.write(() => this.send(append));
    const { applied = false, state, before = NO_PROGRESS, after = NO_PROGRESS } = appended ?? {};
    const version = state?.version ?? 0;
    const isUnchanged = applied && version === this.version + 1;
    this.version = version;
    this.latest = after;
    if (!isUnchanged || mode === 'restart') this.rebase(before);
    if (!applied) return null;
    this.isAnyStored = true;
    return appended;
  }

  /** Makes a store call, and records whether it may be applied later. */
  private async send<T>(call: () => Promise<T>): Promise<T> {
    let isUnknown = false;
    this.isUnanswered = true;
    try {
      return await call();
    } catch (error) {
      isUnknown = error instanceof StoreUnavailableError;
      throw error;
    } finally {
      this.isUnanswered = isUnknown;
    }
  }

  /** Emits the violation. @returns the error */
  private refusal(tool: string, progress: StoredProgress): Error {
    const { id, sessionId, fence } = this.attempt;
    const refusal = this.refusalIn(progress, tool);
    // The plan allows the use: another attempt has stored entries, or the turn has ended.
    if (!refusal) return new TurnFencedError(sessionId, id, fence);
    const { step, allowed } = refusal;
    this.states.tell(sessionId, [{ type: 'tool-violated', tool, step, allowed }]);
    return refusal;
  }

  private refusalIn(progress: StoredProgress, tool: string): ToolNotAllowedError | null {
    return refusalOf(this.plan, this.attempt.sessionId, shownProgress(progress), tool);
  }
}

/** Returns the entry that checks the use and records it, at its place in the order of all writers. */
function toAdmission({ tool, callId, turnId, facts, recentTools }: TurnUse, plan: StepPlan): OrchestrationEntry {
  const { signature, onViolation } = plan;
  return {
    type: 'admit',
    tool,
    callId: callId!,
    ...(turnId === undefined ? {} : { turnId }),
    plan: signature,
    onViolation,
    ...(facts ? { facts } : {}),
    ...(recentTools === undefined ? {} : { recentTools }),
  };
}
