import { checkInput } from '../common/check-input.js';
import { assertName, mintId } from '../common/ids.js';
import { inBatches } from '../common/in-batches.js';
import { type AgentOrchestration } from './agent-orchestration.js';
import { type AgentRef, agentName } from './agent-ref.js';
import { type AIOrchestrationState, toAIState } from './ai-orchestration-state.js';
import { defineStepPlan } from './define-step-plan.js';
import { type OrchestrationAgents } from './orchestration-agents.js';
import { type OrchestrationConfig } from './orchestration-config.js';
import { type OrchestrationState } from './orchestration-state.js';
import { UnknownStepError } from './orchestration.errors.js';
import { type OrchestrationUpdates, ToolUseOptions, toUpdates } from './orchestration.inputs.js';
import { stepNamed } from './step-plan.js';
import { assertOwnCall, toToolCall } from './tool-call.js';
import { type TokenUsageInput, toTokenUsage } from '../common/token-usage.js';

/** Between two looks at what is left to remove. */
const BATCH = 500;

/** Of which agent each manager is, for what is made of a manager. */
const scopes = new WeakMap<OrchestrationStateManager, OrchestrationScope>();

export interface OrchestrationScope {
  readonly agents: OrchestrationAgents;
  readonly agent: string | undefined;
}

/** @returns `undefined` for something that is no manager */
export function scopeOf(manager: OrchestrationStateManager): OrchestrationScope | undefined {
  return scopes.get(manager);
}

/**
 * The states of an agent, by session: active step, progress in tool sequences, recent tools, tokens (ORC-01).
 *
 * Every method is one atomic operation of the store, so nothing is lost whoever else writes at the same time, and all of
 * them reject with StoreUnavailableError when the store does not answer: that is never taken for "not found" (ORC-14). Ids of
 * sessions are checked; a bad one is an InvalidInputError. Inside a turn, `turn.tools` is the way: what a turn does is
 * stored when it settles, or not at all.
 *
 * Injected, it is of the only agent that has a plan; with several plans say whose with {@link of}.
 */
export class OrchestrationStateManager {
  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly agent?: string,
  ) {
    scopes.set(this, { agents, agent });
  }

  /** The states of another agent: an orchestrator, a plan, or a name (ORC-02). */
  of(agent: AgentRef): OrchestrationStateManager {
    return new OrchestrationStateManager(this.agents, agentName(agent));
  }

  /** @returns `null` when there is none, or it has expired. Never creates; keeps it from expiring (ORC-03) */
  async getState(sessionId: string): Promise<OrchestrationState | null> {
    return this.states.read(sessionId);
  }

  /**
   * The state, made with defaults when there is none (ORC-04).
   * @param sessionId left out: a new id, which the state has
   * @param config an agent's; when it has no steps, there is nothing to keep
   * @returns `null` for a `config` without steps; nothing is stored then
   * @throws SessionsConfigurationError for a wrong `config`
   */
  async getOrCreateState(sessionId?: string, config?: OrchestrationConfig): Promise<OrchestrationState | null> {
    if (config !== undefined && stepsOf(config) === 0) return null;
    const appended = await this.states.append(sessionId ?? mintId(), [], { create: true });
    return appended && appended.state;
  }

  /**
   * A shallow merge, or what a function makes of the state (ORC-05). The function is called again when somebody else changed
   * the state meanwhile, so that nothing of that is lost; what it returns is merged; `undefined` changes nothing.
   * @returns `null` when there is no state; none is made
   * @throws InvalidInputError for what is no field of it; UnknownStepError; StateConflictError when the state never rested;
   * what the function throws, and the state is as before
   */
  async updateState(
    sessionId: string,
    updates:
      | OrchestrationUpdates
      | ((state: OrchestrationState) => OrchestrationUpdates | undefined | Promise<OrchestrationUpdates | undefined>),
  ): Promise<OrchestrationState | null> {
    const { states } = this;
    if (typeof updates !== 'function') {
      const appended = await states.append(sessionId, [{ type: 'merge', ...this.checked(updates) }]);
      return appended && appended.state;
    }
    return states.appendTo(sessionId, await states.read(sessionId), async (state) => {
      const made = await updates(structuredClone(state));
      return made === undefined ? null : [{ type: 'merge', ...this.checked(made) }];
    });
  }

  /**
   * Enters a step where it was left, or none with `undefined` (ORC-06).
   * @returns `null` when there is no state
   * @throws UnknownStepError when the plan is known and has no such step
   */
  async setActiveStep(sessionId: string, step: string | undefined): Promise<OrchestrationState | null> {
    this.assertStep(step);
    const { states } = this;
    const plan = step !== undefined && states.plan && { plan: states.plan.signature };
    const appended = await states.append(sessionId, [{ type: 'step', step: step ?? null, ...plan }]);
    return appended && appended.state;
  }

  /**
   * Records a use, and moves nothing else (ORC-07). Creates the state when there is none.
   * @throws ToolCallConflictError for a `callId` of another tool or input
   */
  async addUsedTool(sessionId: string, tool: string, options: ToolUseOptions = {}): Promise<OrchestrationState> {
    assertName(tool, 'tool');
    const { outcome = 'succeeded', ...about } = checkInput(ToolUseOptions, options, 'options');
    const call = toToolCall(tool, about);
    const { state, after } = (await this.states.append(sessionId, [{ type: 'tool', ...call, outcome }], {
      create: true,
    }))!;
    assertOwnCall(after, call);
    return state;
  }

  /** One item further, up to the end of the active step's sequence where the plan is known (ORC-08). @returns `null` when there is no state */
  async advanceSequence(sessionId: string): Promise<OrchestrationState | null> {
    const { states } = this;
    const plan = states.plan && { plan: states.plan.signature };
    const appended = await states.append(sessionId, [{ type: 'advance', ...plan }]);
    return appended && appended.state;
  }

  /** Adds to the tokens that the session has taken (ORC-11). Makes the state when there is none. @throws InvalidInputError */
  async addTokenUsage(sessionId: string, usage: TokenUsageInput): Promise<OrchestrationState> {
    const entry = { type: 'tokens', usage: toTokenUsage(usage) } as const;
    const { state } = (await this.states.append(sessionId, [entry], { create: true }))!;
    return state;
  }

  /** Back to the defaults, which are returned (ORC-09). */
  async resetState(sessionId: string): Promise<OrchestrationState> {
    return this.states.reset(sessionId);
  }

  /** Deletes the state. @returns whether there was one */
  async removeSession(sessionId: string): Promise<boolean> {
    return this.states.delete(sessionId);
  }

  /** As {@link removeSession}. */
  cleanupSession(sessionId: string): Promise<boolean> {
    return this.removeSession(sessionId);
  }

  /** What a prompt may say of the state (ORC-10). @returns `null` when there is none */
  async toAIOrchestrationState(sessionId: string): Promise<AIOrchestrationState | null> {
    const { states } = this;
    const state = await states.read(sessionId);
    return state && toAIState(state, states.plan);
  }

  /**
   * Removes what has expired, and the states of all agents beyond `maxSessions` that were idle for the longest (ORC-13). It is
   * done from time to time by itself, unless `cleanup` says otherwise. @returns how many went
   */
  async cleanupExpired(): Promise<number> {
    const { store, settings } = this.agents.parts;
    const { maxSessions, namespace } = settings;
    const expired = await inBatches(BATCH, (limit) => store.deleteExpired(limit));
    if (maxSessions === undefined) return expired;
    return expired + (await inBatches(BATCH, (limit) => store.evictIdle(namespace, maxSessions, limit)));
  }

  private get states(): AgentOrchestration {
    return this.agents.get(this.agent);
  }

  private checked(updates: OrchestrationUpdates): ReturnType<typeof toUpdates> {
    const checked = toUpdates(updates);
    this.assertStep(checked.updates.activeStep);
    return checked;
  }

  private assertStep(step: string | undefined): void {
    if (step === undefined) return;
    assertName(step, 'step');
    const { plan } = this.states;
    if (plan && !stepNamed(plan, step))
      throw new UnknownStepError(
        step,
        plan.steps.map(({ name }) => name),
      );
  }
}

function stepsOf(config: OrchestrationConfig): number {
  return defineStepPlan({ ...config, agent: 'config' }).steps.length;
}
