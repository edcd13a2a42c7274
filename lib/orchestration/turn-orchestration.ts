import { Logger } from '@nestjs/common';
import { type StateSnapshot } from '../ledger/checkpoint.js';
import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { loggedId } from '../common/log-details.js';
import { type Mutable } from '../common/mutable.js';
import { type StateChange, type StateDocument } from '../ledger/state.store.js';
import { CONTESTED, untilUncontested } from '../state/until-uncontested.js';
import { type AgentOrchestration } from './agent-orchestration.js';
import { type AIOrchestrationState, toAIState } from './ai-orchestration-state.js';
import { type OrchestrationRules } from './apply-entry.js';
import { availableTools } from './available-tools.js';
import { startOf } from './open-turn.js';
import { foldOf, progressOf, toValue } from './orchestration-document.js';
import { type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationEntry, type StoredEntry, type TurnPart } from './orchestration-entry.js';
import {
  indexOfStep,
  NO_PROGRESS,
  type OrchestrationProgress,
  shownProgress,
  type ToolOutcome,
} from './orchestration-state.js';
import { TokenBudgetExceededError } from './orchestration.errors.js';
import { type KnownState, SharedUses, type SharingAttempt } from './shared-uses.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { afterwards, messageFacts, nextStep } from './step-conditions.js';
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { type TokenCounts, tokensOf } from '../common/token-counts.js';
import { refusalOf, allowedAfterReset } from './tool-refusal.js';
import { isUnfinished } from './tool-sequence.js';
import { TurnJournal, type TurnUse } from './turn-journal.js';

/** The turn fields that this class needs. */
export interface OrchestratedTurn extends SharingAttempt {
  readonly message: string;
  /** The tokens that earlier attempts have recorded. */
  readonly usage?: TokenCounts;
}

/**
 * The plan's progress in one attempt of a turn. It is kept in memory, and stored by the turn's settlement or not at
 * all. Uses that the plan limits are also stored before they begin, for admissions outside of the turn.
 */
export class TurnOrchestration {
  private readonly logger = new Logger(TurnOrchestration.name);
  private readonly journal: TurnJournal;
  private readonly shared: SharedUses;
  /** The facts of the user's message, which activates a step only when the turn begins (FIX-22). */
  private said: readonly string[] = [];
  /** True if predicates have not been evaluated since the last use was admitted. */
  private isOutdated = false;
  private failure: { readonly error: unknown } | null = null;
  /** True if tokens of this attempt are in the stored state. */
  private isRecorded = false;
  /** True once this process has emitted that the turn created the state. */
  private isAnnounced = false;

  private constructor(
    private readonly turn: OrchestratedTurn,
    private readonly plan: StepPlan,
    private readonly states: AgentOrchestration,
    private readonly predicates: StepPredicates,
    private readonly document: StateDocument | null,
    private readonly rules: OrchestrationRules,
    known: KnownState,
  ) {
    this.journal = new TurnJournal(startOf(turn, known.progress, rules), rules);
    this.shared = new SharedUses(turn, plan, states, rules, this.journal, known);
  }

  /** Starts from the stored state, and evaluates the message. Usually needs no store call. */
  static async begin(
    turn: OrchestratedTurn,
    plan: StepPlan,
    states: AgentOrchestration,
    predicates: StepPredicates,
    document: StateDocument | null,
  ): Promise<TurnOrchestration> {
    await states.catalog.publish(plan);
    const rules = document ? await states.catalog.rulesFor(document) : states.catalog.rules;
    const progress = document ? progressOf(document, rules) : NO_PROGRESS;
    const known = { progress, version: document?.version ?? 0 };
    const begun = new TurnOrchestration(turn, plan, states, predicates, document, rules, known);
    begun.said = messageFacts(plan, turn.message);
    await begun.evaluate();
    begun.said = afterwards(begun.said);
    return begun;
  }

  get state(): OrchestrationProgress {
    return shownProgress(this.journal.progress);
  }

  get activeStep(): OrchestrationStep | undefined {
    return effectiveStep(this.plan, this.state.activeStep);
  }

  /** True if the order of tools matters now. */
  get isSequenced(): boolean {
    const { activeStep } = this;
    return isUnfinished(activeStep?.sequence, this.index);
  }

  allowed(tools: readonly string[]): string[] {
    return [...availableTools(this.activeStep, this.index, tools)];
  }

  toAIState(): AIOrchestrationState {
    return toAIState(this.state, this.plan);
  }

  /**
   * Admits a use that is about to begin: it counts from now on, for later uses (FIX-20). Call it for one use at a time.
   * A use that the plan limits takes one round trip, and counts also for uses outside of the turn (FIX-88).
   * @param isDone true if an earlier attempt has stored the result: the use is then not rejected again
   * @throws ToolNotAllowedError, unless `onViolation` allows the use; what a predicate throws; TurnStoppedError,
   * TurnFencedError
   */
  async admit(tool: string, callId: string, isDone: boolean): Promise<TurnUse> {
    const { journal, shared } = this;
    const isStored = shared.isStored(tool, callId);
    const isShared = !isDone && !isStored && shared.isNeeded(tool);
    return untilUncontested(this.turn.sessionId, async () => {
      if (this.isOutdated) await this.evaluate();
      // The store decides about a use beside others that it has stored: uses outside of the turn may have followed them.
      if (!isShared || !shared.isOpen || this.plan.onViolation === 'reset')
        this.assertAllowed(tool, isDone || isStored);
      const { revision } = journal;
      const use = await this.useOf(tool, callId, isShared);
      if (isShared) return (await shared.share(use, revision)) ? use : CONTESTED;
      const before = this.activeStep;
      journal.add(use);
      // The end of a sequence has precedence over conditions.
      this.isOutdated = use.facts === undefined && this.activeStep === before;
      shared.reached(use);
      return use;
    });
  }

  /**
   * Adds the outcome of a use, and evaluates the active step. Never rejects, because the tool has run: an error of a
   * predicate fails the attempt.
   */
  async complete(use: TurnUse, outcome: ToolOutcome): Promise<void> {
    const { journal } = this;
    const isAsked = hasPredicates(this.plan);
    const handedOver = outcome === 'succeeded' && journal.changedStep(use);
    const isReverted = outcome === 'failed' && journal.isStored(use);
    if (outcome === 'succeeded') journal.succeed(use);
    else journal.fail(use, isAsked ? undefined : use.facts);
    if (isAsked && !handedOver) await this.evaluate().catch(() => undefined);
    // Stored again with the next use, or by the settlement, if the store does not answer.
    if (isReverted) await this.shared.shareAgain().catch(() => undefined);
  }

  /** @throws what a predicate threw */
  assertSound(): void {
    if (this.failure) throw this.failure.error;
  }

  /** Adds tokens that the turn's own models did not use: they count when the turn settles. */
  addUsage(usage: TokenCounts): void {
    this.journal.add({ type: 'tokens', usage });
  }

  /** @param total all tokens of the turn so far */
  countTokens(total: TokenCounts): void {
    this.journal.add(this.tokens(total));
  }

  /** Counts the tokens of the turn for the session, even if the attempt fails. */
  spending(total: TokenCounts): StateChange {
    return this.change([this.tokens(total)]);
  }

  /** Called when the change from {@link spending} is stored. */
  recorded(): void {
    this.announce();
    this.isRecorded = true;
  }

  /** @throws TokenBudgetExceededError */
  assertBudget(): void {
    const { agent, tokenBudget } = this.plan;
    const usedTokens = this.state.cumulativeTokenUsage.totalTokens;
    if (tokenBudget === undefined || usedTokens < tokenBudget) return;
    const { sessionId } = this.turn;
    this.states.events.emit({ type: 'token-budget-exceeded', agent, sessionId, usedTokens, tokenBudget });
    throw new TokenBudgetExceededError(sessionId, usedTokens, tokenBudget);
  }

  /** Returns the current position in the changes of this attempt. */
  mark(): number {
    return this.journal.length;
  }

  since(mark: number): readonly OrchestrationEntry[] {
    // Tokens are recorded with the step that stores the entries.
    return this.journal.since(mark).filter((entry) => !isOfTurn(entry));
  }

  /** Repeats the entries of an earlier attempt whose code does not run again. */
  replay(entries: readonly OrchestrationEntry[]): void {
    for (const entry of entries) {
      this.journal.add(entry);
      if (entry.type === 'tool') this.shared.reached(entry);
    }
  }

  /** Returns the changes for the settlement, with the undo. An empty change renews the expiry of the state. */
  changes(): readonly StateChange[] {
    if (this.shared.isOpen) return [this.change(this.shared.settle(this.entries()))];
    const entries = [...(this.turn.undo ?? []), ...this.entries()];
    return entries.length > 0 || this.document ? [this.change(entries)] : [];
  }

  /**
   * Returns the change that removes stored uses of a turn that fails or is cancelled; `null` if there are none. It
   * creates the state only if a use may arrive after it: the state then rejects that use.
   */
  withdrawal(): StateChange | null {
    const { shared } = this;
    if (!shared.isOpen) return null;
    const change = this.change([shared.withdraw()]);
    if (shared.isUncertain) return change;
    const { initial: _, ...append } = change.append;
    return { ...change, append };
  }

  /** Returns the state after the turn, for its checkpoint. Call it after {@link changes}. */
  snapshot(): StateSnapshot {
    return { name: this.states.name, value: toValue(this.state) };
  }

  /** Emits the effects of the turn, after they are stored. */
  settled(): void {
    // Violations were emitted when they occurred.
    const effects = this.journal.effects.filter(({ type }) => type !== 'tool-violated');
    if (this.entries().length > 0) this.announce();
    this.states.tell(this.turn.sessionId, effects);
  }

  /** Emits that the turn created the state, if it did so before it failed. */
  ended(): void {
    if (this.shared.hasStored || this.shared.isUncertain) this.announce();
  }

  /** Resets the recorded tokens first, so that conditions see the same tokens as in the turn. */
  private entries(): readonly TurnPart[] {
    const entries = this.journal.parts();
    const start = this.isRecorded ? [this.tokens(this.turn.usage ?? NO_PROGRESS.cumulativeTokenUsage)] : [];
    // Consecutive token entries: only the last one is needed.
    return [...start, ...entries].filter((entry, at, all) => !isOfTurn(entry) || !isOfTurn(all[at + 1]));
  }

  private announce(): void {
    if (this.document || this.isAnnounced) return;
    this.isAnnounced = true;
    this.states.emit(this.turn.sessionId, 'created');
  }

  private tokens(usage: TokenCounts): OrchestrationEntry {
    return { type: 'tokens', usage: tokensOf(usage), turnId: this.turn.id };
  }

  private change(entries: readonly StoredEntry[]): StateChange {
    const { document, states } = this;
    // Fold only once per attempt.
    const fold = document && !this.isRecorded && foldOf(document, this.rules);
    return {
      name: states.name,
      append: {
        id: mintId(),
        entries: entries as unknown as readonly JsonValue[],
        ...(entries.length === 0 ? {} : { initial: toValue(NO_PROGRESS) }),
        ...(fold ? { fold } : {}),
        ...states.access,
      },
    };
  }

  /** @param isShared also evaluates the predicates, because the use is stored with its effect on the plan */
  private async useOf(tool: string, callId: string, isShared: boolean): Promise<TurnUse> {
    const { plan, journal } = this;
    const { id: turnId } = this.turn;
    const about: Mutable<TurnUse> = { type: 'tool', tool, callId, turnId, outcome: 'admitted', plan: plan.signature };
    if (!hasPredicates(plan)) about.facts = this.said;
    const use: TurnUse = this.states.stamped(about);
    if (!isShared || use.facts) return use;
    return { ...use, facts: await this.ask(() => shownProgress(journal.preview(use))) };
  }

  /** @throws ToolNotAllowedError, unless `onViolation` allows the use */
  private assertAllowed(tool: string, isDone: boolean): void {
    const { plan, state } = this;
    const { sessionId } = this.turn;
    const { onViolation } = plan;
    const refusal = refusalOf(plan, sessionId, state, tool);
    if (!refusal) return;
    const restarts = onViolation === 'reset' && allowedAfterReset(plan, state, tool);
    if (restarts) this.journal.add({ type: 'restart', plan: plan.signature });
    // An earlier attempt has reported it.
    if (isDone) return;
    const { step, allowed } = refusal;
    this.states.tell(sessionId, [{ type: 'tool-violated', tool, step, allowed }]);
    if (onViolation === 'warn') this.logger.warn(`Session ${loggedId(sessionId)}: ${refusal.message}`);
    else if (!restarts) throw refusal;
  }

  private async evaluate(): Promise<void> {
    const { plan, journal } = this;
    const facts = await this.ask();
    const next = nextStep(plan, this.state, new Set(facts));
    if (next && next !== this.activeStep) journal.add({ type: 'evaluate', plan: plan.signature, facts });
  }

  private async ask(state = (): OrchestrationProgress => this.state): Promise<readonly string[]> {
    const { plan, journal } = this;
    const { sessionId, message } = this.turn;
    for (;;) {
      const { revision } = journal;
      this.isOutdated = false;
      try {
        const answers = await this.predicates.ask(plan, { agent: plan.agent, sessionId, state: state(), message });
        // Results that depend on a dropped use are invalid.
        if (revision === journal.revision) return [...this.said, ...answers];
      } catch (error) {
        this.failure ??= { error };
        throw error;
      }
    }
  }

  private get index(): number {
    return indexOfStep(this.state, this.activeStep?.name);
  }
}

/** Returns true if the entry counts the turn's own tokens. */
function isOfTurn(entry: OrchestrationEntry | undefined): boolean {
  return entry?.type === 'tokens' && entry.turnId !== undefined;
}
