import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { loggedId } from '../common/log-details.js';
import { assertName, mintId } from '../common/ids.js';
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
import { ToolAdmissionOptions, ToolUsageOptions } from './orchestration.inputs.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { ToolAdmissions } from './tool-admissions.js';
import { callName } from '../ledger/turn-step.js';
import { assertOwnCall, type ToolCall, toToolCall } from './tool-call.js';
import { describeMismatch, refusalOf, allowedAfterReset } from './tool-refusal.js';

/**
 * Applies an agent's plan in a session: the active step, the tools that are allowed now, and the effect of tool uses.
 *
 * Without a plan, or with one that has no steps, all tools are allowed and nothing is stored (ORC-31). The injected
 * instance belongs to the only agent that has a plan; with several, select the agent with {@link of}. Inside a turn,
 * use `turn.tools`.
 */
export class OrchestrationService {
  private readonly logger = new Logger(OrchestrationService.name);

  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly predicates: StepPredicates,
    private readonly agent?: string,
  ) {}

  /**
   * Returns the service for another agent's plan. @throws SessionsConfigurationError for an agent that is not
   * registered, at the latest when it is used
   */
  of(agent: AgentRef): OrchestrationService {
    const name = agentName(agent);
    this.agents.assertKnown(name);
    return new OrchestrationService(this.agents, this.predicates, name);
  }

  /**
   * True if this process has a plan with steps. @throws SessionsConfigurationError if there are several plans and no
   * agent is selected
   */
  get hasPlan(): boolean {
    return this.plan !== undefined;
  }

  /**
   * Returns the active step: the default step, until another one becomes active (ORC-25). `undefined` if there is
   * neither. Changes nothing.
   */
  async getActiveStep(sessionId: string): Promise<OrchestrationStep | undefined> {
    const { plan, states } = this;
    if (!plan) return undefined;
    return effectiveStep(plan, (await states.read(sessionId))?.activeStep);
  }

  /**
   * Evaluates the active step again, as every tool use does: for a new message, or when the result of a predicate may
   * have changed (ORC-25, ORC-27). Creates the state if it does not exist. One round trip; two for a plan with
   * predicates.
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

  /** Returns the given tools that are allowed now, in their order: first by the step, then by its sequence (ORC-24). */
  async getAvailableTools(sessionId: string, tools: readonly string[]): Promise<readonly string[]> {
    const { plan, states } = this;
    if (!plan) return [...tools];
    const state = (await states.read(sessionId)) ?? NO_PROGRESS;
    const step = effectiveStep(plan, state.activeStep);
    return availableTools(step, indexOfStep(state, step?.name), tools);
  }

  /**
   * Checks whether the plan allows a tool and records its use, in one atomic operation of the store. Concurrent uses,
   * from any process and in turns, are admitted as if they came one after the other (FIX-21, FIX-88). The use counts
   * from then on. Record its outcome when it ends. `onViolation` decides how a tool is handled that is not allowed, as
   * in {@link assertToolAllowed}. One round trip; two for a plan with predicates, and one more for each conflict.
   * @throws ToolNotAllowedError; HandlerError (`TOOL_CALL_CONFLICT`) if the `callId` was used with another tool or input; what a
   * predicate throws, in which case nothing is recorded
   */
  async admitTool(
    sessionId: string,
    tool: string,
    options: ToolAdmissionOptions = {},
  ): Promise<{
    /** Identifies the use in the session: the given id, or a new one. */
    readonly callId: string;
    /** The state after the admission; `null` without a plan. */
    readonly state: OrchestrationState | null;
    /**
     * Records the outcome; a second call has no effect. `failed` reverts the moves of the use, unless later uses moved
     * on from there. If an id was admitted twice, and one use fails and the other succeeds, it counts as succeeded.
     * Without an outcome, for example after a crash, the use counts as succeeded. Returns the state; `null` without a
     * plan, or if the state no longer exists.
     */
    readonly record: (outcome: 'succeeded' | 'failed') => Promise<OrchestrationState | null>;
  }> {
    assertName(tool, 'tool');
    const { callId = mintId(), input } = checkInput(ToolAdmissionOptions, options, 'options');
    const { plan, states } = this;
    if (!plan) return { callId, state: null, record: () => Promise.resolve(null) };
    const call = { ...toToolCall(tool, { input }), callId: callName(callId) };
    return { ...(await new ToolAdmissions(states, plan, this.predicates, sessionId).admit(call)), callId };
  }

  /**
   * Rejects a tool that the plan does not allow now (ORC-28). `onViolation: 'warn'` only logs. `reset` restarts the
   * sequence, and rejects a tool that is not allowed even then. The check is advisory, because it reserves nothing: two
   * concurrent callers may both pass. {@link admitTool} checks and records in one operation.
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
    if (plan.onViolation === 'warn') {
      this.logger.warn(`Session ${loggedId(sessionId)}: ${refusal.message}`);
      // Recording the use emits the violation (FIX-28).
      return;
    }
    states.tell(sessionId, [{ type: 'tool-violated', tool, step, allowed }]);
    if (plan.onViolation !== 'reset') throw refusal;
    // Only if the state is still the one that was checked.
    const restarted = await states.appendTo(sessionId, state, (now) =>
      allowedAfterReset(plan, now, tool) ? [{ type: 'restart', plan: plan.signature }] : null,
    );
    if (!restarted || refusalOf(plan, sessionId, restarted, tool)) throw refusal;
  }

  /**
   * Records a tool use, moves the sequence, and evaluates the active step, in one operation (ORC-30): one round trip,
   * two for a plan with predicates. It also records uses that the plan does not allow; call `assertToolAllowed` first
   * to reject them.
   * @returns the state; `null` without a plan, in which case nothing is stored
   * @throws InvalidInputError; HandlerError (`TOOL_CALL_CONFLICT`); what a predicate throws. The use is then already recorded, so
   * pass a `callId` if you retry
   */
  async processToolUsage(
    sessionId: string,
    tool: string,
    options: ToolUsageOptions = {},
  ): Promise<OrchestrationState | null> {
    assertName(tool, 'tool');
    const { outcome = 'succeeded', message, ...about } = checkInput(ToolUsageOptions, options, 'options');
    const call = toToolCall(tool, about);
    const { plan, states } = this;
    if (!plan) return null;
    const { signature } = plan;
    const use = { type: 'tool', ...call, outcome, plan: signature } as const;
    if (!hasPredicates(plan)) {
      const facts = await this.facts(plan, sessionId, NO_PROGRESS, message);
      return this.recorded(sessionId, call, await states.append(sessionId, [{ ...use, facts }], { create: true }));
    }
    const appended = await states.append(sessionId, [use], { create: true });
    const state = this.recorded(sessionId, call, appended);
    // The sequence has already decided the next step.
    if (appended!.effects.some(({ type }) => type === 'step-changed')) return state;
    return states.appendTo(sessionId, state, async (now) => [
      { type: 'evaluate', plan: signature, facts: await this.facts(plan, sessionId, now, message) },
    ]);
  }

  /**
   * Checks the budget before a call of a model (ORC-11).
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

  private recorded(sessionId: string, call: ToolCall, appended: Appended | null): OrchestrationState {
    const { state, after, effects } = appended!;
    assertOwnCall(after, call);
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

  /** The plan, if it has steps. */
  private get plan(): StepPlan | undefined {
    const { plan } = this.states;
    return plan && plan.steps.length > 0 ? plan : undefined;
  }

  private get states(): AgentOrchestration {
    // `of` may have been called before all agents were registered.
    if (this.agent !== undefined) this.agents.assertKnown(this.agent);
    return this.agents.get(this.agent);
  }
}
