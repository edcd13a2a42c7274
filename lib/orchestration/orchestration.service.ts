import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertName } from '../common/ids.js';
import { hashed } from '../common/log-id.js';
import { type AgentOrchestration, type Appended } from './agent-orchestration.js';
import { type AgentRef, agentName } from './agent-ref.js';
import { availableTools } from './available-tools.js';
import { type OrchestrationAgents } from './orchestration-agents.js';
import { type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationEntry } from './orchestration-entry.js';
import {
  indexOfStep,
  NO_PROGRESS,
  type OrchestrationProgress,
  type OrchestrationState,
} from './orchestration-state.js';
import { TokenBudgetExceededError } from './orchestration.errors.js';
import { ToolUsageOptions } from './orchestration.inputs.js';
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { describeMismatch, refusalOf, wouldPassAnew } from './tool-refusal.js';

/**
 * An agent's plan in a session: which step is active, which tools it may use now, and what a use of one makes of it.
 *
 * Without a plan, or with one that has no steps, all tools are allowed and nothing is stored (ORC-31). It is of the only agent
 * that has a plan; with several say whose with {@link of}. Inside a turn `turn.tools` is the way.
 */
export class OrchestrationService {
  private readonly logger = new Logger(OrchestrationService.name);

  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly predicates: StepPredicates,
    private readonly agent?: string,
  ) {}

  /** The plan of another agent. */
  of(agent: AgentRef): OrchestrationService {
    return new OrchestrationService(this.agents, this.predicates, agentName(agent));
  }

  /** Whether this process knows a plan with steps. @throws SessionsConfigurationError when there are several, and none is named */
  get hasPlan(): boolean {
    return this.plan !== undefined;
  }

  /** The step that is active: the default one until another was (ORC-25). `undefined` without both. Changes nothing. */
  async getActiveStep(sessionId: string): Promise<OrchestrationStep | undefined> {
    const { plan, states } = this;
    if (!plan) return undefined;
    return effectiveStep(plan, (await states.read(sessionId))?.activeStep);
  }

  /**
   * Looks for the active step anew, as every use of a tool does: for a message that came, or when a predicate may have another
   * answer (ORC-25, ORC-27). Makes the state when there is none. One round trip; two for a plan with predicates.
   */
  async evaluateActiveStep(
    sessionId: string,
    options: Pick<ToolUsageOptions, 'message'> = {},
  ): Promise<OrchestrationStep | undefined> {
    const { plan, states } = this;
    if (!plan) return undefined;
    const { message } = checkInput(ToolUsageOptions, options, 'options');
    const entry = async (state: OrchestrationProgress): Promise<OrchestrationEntry> => ({
      type: 'evaluate',
      plan: plan.signature,
      facts: await this.facts(plan, sessionId, state, message),
    });
    if (!hasPredicates(plan)) {
      const appended = await states.append(sessionId, [await entry(NO_PROGRESS)], { create: true });
      return effectiveStep(plan, appended!.state.activeStep);
    }
    const { state } = (await states.append(sessionId, [], { create: true }))!;
    const evaluated = await states.appendTo(sessionId, state, async (now) => [await entry(now)]);
    return effectiveStep(plan, evaluated?.activeStep);
  }

  /** Those of the tools that may be used now, in their order: what the step allows, then what its sequence does (ORC-24). */
  async getAvailableTools(sessionId: string, tools: readonly string[]): Promise<readonly string[]> {
    const { plan, states } = this;
    if (!plan) return [...tools];
    const state = (await states.read(sessionId)) ?? NO_PROGRESS;
    const step = effectiveStep(plan, state.activeStep);
    return availableTools(step, indexOfStep(state, step?.name), tools);
  }

  /**
   * Refuses a tool that the plan does not allow now (ORC-28), as `onViolation` says: `warn` only logs, `reset` starts the
   * sequence over and refuses what even then is not allowed. It reserves nothing: of two callers at the same time both may
   * pass. Turns of a session run one at a time; there `turn.tools.use` leaves no gap.
   * @throws ToolNotAllowedError
   */
  async assertToolAllowed(sessionId: string, tool: string): Promise<void> {
    assertName(tool, 'tool');
    const { plan, states } = this;
    if (!plan) return;
    const state = await states.read(sessionId);
    const refusal = refusalOf(plan, sessionId, state ?? NO_PROGRESS, tool);
    if (!refusal) return;
    const { step, allowed } = refusal;
    states.tell(sessionId, [{ type: 'tool-violated', tool, step, allowed }]);
    if (plan.onViolation === 'warn') {
      this.logger.warn(`Session ${hashed(sessionId)}: ${refusal.message}`);
      return;
    }
    if (plan.onViolation !== 'reset') throw refusal;
    // In the state that was looked at, and in none that somebody else has changed since.
    const restarted = await states.appendTo(sessionId, state, (now) =>
      wouldPassAnew(plan, now, tool) ? [{ type: 'restart', plan: plan.signature }] : null,
    );
    if (!restarted || refusalOf(plan, sessionId, restarted, tool)) throw refusal;
  }

  /**
   * Records the use of a tool, moves the sequence, and looks for the active step, in one operation (ORC-30): one round trip,
   * two for a plan with predicates. It records whatever the plan allows; to refuse, ask `assertToolAllowed` before.
   * @returns the state; `null` without a plan: nothing is stored then
   * @throws InvalidInputError; what a predicate throws: the use is recorded then, so give it a `callId` before you try again
   */
  async processToolUsage(
    sessionId: string,
    tool: string,
    options: ToolUsageOptions = {},
  ): Promise<OrchestrationState | null> {
    assertName(tool, 'tool');
    const { callId, outcome = 'succeeded', message } = checkInput(ToolUsageOptions, options, 'options');
    const { plan, states } = this;
    if (!plan) return null;
    const { signature } = plan;
    const use = { type: 'tool', tool, outcome, plan: signature, ...(callId === undefined ? {} : { callId }) } as const;
    if (!hasPredicates(plan)) {
      const facts = await this.facts(plan, sessionId, NO_PROGRESS, message);
      return this.recorded(sessionId, await states.append(sessionId, [{ ...use, facts }], { create: true }));
    }
    const appended = await states.append(sessionId, [use], { create: true });
    const state = this.recorded(sessionId, appended);
    // The sequence has said where to go on.
    if (appended!.effects.some(({ type }) => type === 'step-changed')) return state;
    return states.appendTo(sessionId, state, async (now) => [
      { type: 'evaluate', plan: signature, facts: await this.facts(plan, sessionId, now, message) },
    ]);
  }

  /**
   * To ask before a model is called (ORC-11).
   * @throws TokenBudgetExceededError when the session has used up the plan's `tokenBudget`
   */
  async assertTokenBudget(sessionId: string): Promise<void> {
    const { states } = this;
    const { plan } = states;
    if (plan?.tokenBudget === undefined) return;
    const { cumulativeTokenUsage } = (await states.read(sessionId)) ?? NO_PROGRESS;
    const usedTokens = cumulativeTokenUsage.totalTokens;
    if (usedTokens < plan.tokenBudget) return;
    const { agent, tokenBudget } = plan;
    states.events.emit({ type: 'token-budget-exceeded', agent, sessionId, usedTokens, tokenBudget });
    throw new TokenBudgetExceededError(sessionId, usedTokens, tokenBudget);
  }

  private recorded(sessionId: string, appended: Appended | null): OrchestrationState {
    const { state, effects } = appended!;
    const mismatch = describeMismatch(sessionId, effects);
    if (mismatch !== null) this.logger.warn(mismatch);
    return state;
  }

  private facts(
    plan: StepPlan,
    sessionId: string,
    state: OrchestrationProgress,
    message: string | undefined,
  ): Promise<readonly string[]> {
    const { agent } = plan;
    return this.predicates.facts(plan, { agent, sessionId, state, ...(message === undefined ? {} : { message }) });
  }

  /** One that has steps. */
  private get plan(): StepPlan | undefined {
    const { plan } = this.states;
    return plan && plan.steps.length > 0 ? plan : undefined;
  }

  private get states(): AgentOrchestration {
    return this.agents.get(this.agent);
  }
}
