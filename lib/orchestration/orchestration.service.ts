import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertName, mintId } from '../common/ids.js';
import { hashed } from '../common/log-id.js';
import { type AdmittedTool } from './admitted-tool.js';
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
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { ToolAdmissions } from './tool-admissions.js';
import { assertOwnCall, type ToolCall, toToolCall } from './tool-call.js';
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

  /** The plan of another agent. @throws SessionsConfigurationError for one that is not registered, at the latest when it is used */
  of(agent: AgentRef): OrchestrationService {
    const name = agentName(agent);
    this.agents.assertKnown(name);
    return new OrchestrationService(this.agents, this.predicates, name);
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
   * Checks whether the plan allows a tool and records its use, in one atomic operation of the store: of uses that race, from any
   * process, the plan admits as many as it would one after the other (FIX-21). The use counts from then on. Record its outcome
   * when it ends. One round trip; two for a plan with predicates, and one more for each conflict. `onViolation` decides about
   * a tool that is not allowed, as in {@link assertToolAllowed}.
   * @throws ToolNotAllowedError; ToolCallConflictError for a `callId` of another tool or input; what a predicate throws: then nothing is recorded
   */
  async admitTool(sessionId: string, tool: string, options: ToolAdmissionOptions = {}): Promise<AdmittedTool> {
    assertName(tool, 'tool');
    const { callId = mintId(), input } = checkInput(ToolAdmissionOptions, options, 'options');
    const { plan, states } = this;
    if (!plan) return { callId, state: null, record: () => Promise.resolve(null) };
    return new ToolAdmissions(states, plan, this.predicates, sessionId).admit({
      ...toToolCall(tool, { input }),
      callId,
    });
  }

  /**
   * Refuses a tool that the plan does not allow now (ORC-28). With `onViolation: 'warn'` it only logs; with `reset` it starts
   * the sequence over, and refuses a tool that is not allowed even then. The answer is advisory, because it reserves nothing: two
   * callers at the same time may both pass. {@link admitTool} checks and records in one operation.
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
      this.logger.warn(`Session ${hashed(sessionId)}: ${refusal.message}`);
      // Recording the use emits the violation (FIX-28).
      return;
    }
    states.tell(sessionId, [{ type: 'tool-violated', tool, step, allowed }]);
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
   * @throws InvalidInputError; ToolCallConflictError; what a predicate throws: the use is recorded then, so give it a `callId` before you try again
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

  /** One that has steps. */
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
