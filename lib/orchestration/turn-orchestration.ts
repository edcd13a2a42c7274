import { Logger } from '@nestjs/common';
import { type StateSnapshot } from '../checkpoint/checkpoint.js';
import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { type StateChange, type StateDocument } from '../state/state.store.js';
import { type AgentOrchestration } from './agent-orchestration.js';
import { type AIOrchestrationState, toAIState } from './ai-orchestration-state.js';
import { applyEntry, type OrchestrationRules } from './apply-entry.js';
import { availableTools } from './available-tools.js';
import { foldOf, progressOf, toValue } from './orchestration-document.js';
import { type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationEffect, type OrchestrationEntry } from './orchestration-entry.js';
import { indexOfStep, NO_PROGRESS, type OrchestrationProgress } from './orchestration-state.js';
import { TokenBudgetExceededError } from './orchestration.errors.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { messageFacts, nextStep } from './step-conditions.js';
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { type TokenUsage } from '../common/token-usage.js';
import { refusalOf, wouldPassAnew } from './tool-refusal.js';
import { isUnfinished } from './tool-sequence.js';

/** What matters of a turn here. */
export interface OrchestratedTurn {
  readonly id: string;
  readonly sessionId: string;
  readonly message: string;
}

/** What is done with the plan in one attempt of a turn: kept here, and stored by the turn's settlement or not at all. */
export class TurnOrchestration {
  private readonly logger = new Logger(TurnOrchestration.name);
  private readonly journal: OrchestrationEntry[] = [];
  private readonly effects: OrchestrationEffect[] = [];

  private failure: { readonly error: unknown } | null = null;

  private constructor(
    private readonly turn: OrchestratedTurn,
    private readonly plan: StepPlan,
    private readonly states: AgentOrchestration,
    private readonly predicates: StepPredicates,
    private readonly document: StateDocument | null,
    private readonly rules: OrchestrationRules,
    private progress: OrchestrationProgress,
  ) {}

  /** Begins with what is stored, and the step that the message leads to. Asks the store for nothing, as a rule. */
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
    const begun = new TurnOrchestration(turn, plan, states, predicates, document, rules, progress);
    await begun.evaluate();
    return begun;
  }

  get state(): OrchestrationProgress {
    return this.progress;
  }

  get activeStep(): OrchestrationStep | undefined {
    return effectiveStep(this.plan, this.progress.activeStep);
  }

  /** Whether the order of tools matters now. */
  get isSequenced(): boolean {
    const { activeStep } = this;
    return isUnfinished(activeStep?.sequence, this.index);
  }

  allowed(tools: readonly string[]): string[] {
    return [...availableTools(this.activeStep, this.index, tools)];
  }

  toAIState(): AIOrchestrationState {
    return toAIState(this.progress, this.plan);
  }

  /**
   * What the plan says of a tool that is about to be used (ORC-28).
   * @param isDone by an earlier attempt: it is not refused any more
   * @throws ToolNotAllowedError, unless the plan says to do otherwise
   */
  assertAllowed(tool: string, isDone: boolean): void {
    const { plan } = this;
    const { sessionId } = this.turn;
    const { onViolation } = plan;
    const refusal = refusalOf(plan, sessionId, this.progress, tool);
    if (!refusal) return;
    const { step, allowed } = refusal;
    const violated = { type: 'tool-violated', tool, step, allowed } as const;
    const restarts = onViolation === 'reset' && wouldPassAnew(plan, this.progress, tool);
    if (restarts) this.add({ type: 'restart', plan: plan.signature });
    if (onViolation === 'warn' || restarts || isDone) {
      this.effects.push(violated);
      if (onViolation === 'warn') this.logger.warn(`Session ${hashed(sessionId)}: ${refusal.message}`);
      return;
    }
    // The attempt may end with it, and what was refused is told all the same.
    this.states.tell(sessionId, [violated]);
    throw refusal;
  }

  /**
   * Records, advances, and looks for the active step. Never rejects: the tool has done what it did; what a predicate throws
   * fails the attempt.
   */
  async record(tool: string, callId: string, outcome: 'succeeded' | 'failed'): Promise<void> {
    const { plan } = this;
    const { id: turnId, message } = this.turn;
    const use = { type: 'tool', tool, callId, turnId, outcome, plan: plan.signature } as const;
    if (!hasPredicates(plan)) {
      this.add({ ...use, facts: messageFacts(plan, message) });
      return;
    }
    const before = this.activeStep;
    this.add(use);
    // Unless the sequence has said where to go on.
    if (this.activeStep !== before) return;
    await this.evaluate().catch((error: unknown) => {
      this.failure ??= { error };
    });
  }

  /** @throws what a predicate threw */
  assertSound(): void {
    if (this.failure) throw this.failure.error;
  }

  addUsage(usage: TokenUsage): void {
    this.add({ type: 'tokens', usage });
  }

  /** @throws TokenBudgetExceededError */
  assertBudget(): void {
    const { agent, tokenBudget } = this.plan;
    const usedTokens = this.progress.cumulativeTokenUsage.totalTokens;
    if (tokenBudget === undefined || usedTokens < tokenBudget) return;
    const { sessionId } = this.turn;
    this.states.events.emit({ type: 'token-budget-exceeded', agent, sessionId, usedTokens, tokenBudget });
    throw new TokenBudgetExceededError(sessionId, usedTokens, tokenBudget);
  }

  /** A place in what this attempt has done with the plan. */
  mark(): number {
    return this.journal.length;
  }

  since(mark: number): readonly OrchestrationEntry[] {
    return this.journal.slice(mark);
  }

  /** Does again what an earlier attempt has done, which is not run again. */
  replay(entries: readonly OrchestrationEntry[]): void {
    entries.forEach((entry) => this.add(entry));
  }

  /** For the settlement: what was done, or at least that the state is still in use. */
  changes(): readonly StateChange[] {
    const { document, states, journal } = this;
    if (journal.length === 0 && !document) return [];
    const fold = document && foldOf(document, this.rules);
    return [
      {
        name: states.name,
        append: {
          id: mintId(),
          // A copy: what a handler left running adds nothing to what is being stored.
          entries: [...journal] as unknown as readonly JsonValue[],
          ...(journal.length === 0 ? {} : { initial: toValue(NO_PROGRESS) }),
          ...(fold ? { fold } : {}),
          ...states.access,
        },
      },
    ];
  }

  /** What the state is after the turn, for whoever comes back to it. */
  snapshot(): StateSnapshot {
    return { name: this.states.name, value: toValue(this.progress) };
  }

  /** Tells of it, once it is stored. */
  settled(): void {
    this.states.tell(this.turn.sessionId, this.effects);
  }

  private async evaluate(): Promise<void> {
    const { plan, progress } = this;
    const { sessionId, message } = this.turn;
    const { agent, signature } = plan;
    const facts = await this.predicates.facts(plan, { agent, sessionId, state: progress, message });
    const next = nextStep(plan, progress, new Set(facts));
    if (next && next !== this.activeStep) this.add({ type: 'evaluate', plan: signature, facts });
  }

  private add(entry: OrchestrationEntry): void {
    // The store says when it was, once it is stored.
    const { progress, effects } = applyEntry(this.progress, entry, new Date().toISOString(), this.rules);
    this.progress = progress;
    this.journal.push(entry);
    // What the plan did not allow was told when it was looked at.
    this.effects.push(...effects.filter(({ type }) => type !== 'tool-violated'));
  }

  private get index(): number {
    return indexOfStep(this.progress, this.activeStep?.name);
  }
}
