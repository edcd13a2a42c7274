import { checkInput } from '../common/check-input.js';
import { assertName, mintId } from '../common/ids.js';
import { inBatches } from '../common/batches.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type AgentOrchestration } from './agent-orchestration.js';
import { type AgentRef, agentName } from './agent-ref.js';
import { type AIOrchestrationState, toAIState } from './ai-orchestration-state.js';
import { defineStepPlan } from './define-step-plan.js';
import { type OrchestrationAgents } from './orchestration-agents.js';
import { type OrchestrationConfig } from './orchestration-config.js';
import { type OrchestrationState } from './orchestration-state.js';
import { type OrchestrationUpdates, ToolUseOptions, toUpdates } from './orchestration.inputs.js';
import { stepNamed } from './step-plan.js';
import { assertOwnCall, toToolCall } from './tool-call.js';
import { type TokenCountsInput, toTokenCounts } from '../common/token-counts.js';

/** The batch size of removals. */
const BATCH = 500;

/** The agent of each manager, for objects that are built from a manager. */
const scopes = new WeakMap<OrchestrationStateManager, OrchestrationScope>();

export interface OrchestrationScope {
  readonly agents: OrchestrationAgents;
  readonly agent: string | undefined;
}

/** @returns `undefined` for an object that is not a manager */
export function scopeOf(manager: OrchestrationStateManager): OrchestrationScope | undefined {
  return scopes.get(manager);
}

/**
 * Reads and changes the states of an agent, by session: active step, progress in tool sequences, recent tools, tokens
 * (ORC-01).
 *
 * Each write is one atomic operation of the store, so concurrent writes are not lost. `updateState` with a function
 * reads the state first, and {@link cleanupExpired} removes states in batches. All methods reject with
 * StoreUnavailableError if the store does not answer; this is never reported as "not found" (ORC-14). An invalid
 * session id is an InvalidInputError. Inside a turn, use `turn.tools`, whose changes are stored when the turn settles,
 * or not at all.
 *
 * The injected instance belongs to the only agent that has a plan. With several plans, select the agent with {@link
 * of}.
 */
export class OrchestrationStateManager {
  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly agent?: string,
  ) {
    scopes.set(this, { agents, agent });
  }

  /** Returns the states of another agent: an orchestrator, a plan, or a name (ORC-02). */
  of(agent: AgentRef): OrchestrationStateManager {
    return new OrchestrationStateManager(this.agents, agentName(agent));
  }

  /**
   * Returns the state and renews its expiry. Never creates a state. @returns `null` if it does not exist or has expired
   * (ORC-03)
   */
  async getState(sessionId: string): Promise<OrchestrationState | null> {
    return this.states.read(sessionId);
  }

  /**
   * Returns the state; creates it with defaults if it does not exist (ORC-04).
   * @param sessionId default: a new id, which the state contains. In Nest, pass the id of a session, because a new id has none
   * @param config the configuration of an agent. It only decides whether a state is stored: without steps, it is not. It does not
   * replace the registered plan
   * @returns `null` for a `config` without steps
   * @throws SessionsConfigurationError for an invalid `config`; SessionNotFoundError in Nest for an id without a session
   */
  async getOrCreateState(sessionId?: string, config?: OrchestrationConfig): Promise<OrchestrationState | null> {
    if (config !== undefined && stepsOf(config) === 0) return null;
    const appended = await this.states.append(sessionId ?? mintId(), [], { create: true });
    return appended && appended.state;
  }

  /**
   * Merges updates at the first level; a function computes them from the state (ORC-05). The function is called again
   * if the state was changed in the meantime, so that no change is lost. If it returns `undefined`, nothing changes.
   * @returns `null` if there is no state; none is created
   * @throws InvalidInputError for an unknown or invalid field, also with the code `UNKNOWN_STEP`; StateConflictError if the state kept
   * changing; what the function throws, and the state is unchanged
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
   * Enters a step at its stored progress, or no step with `undefined` (ORC-06).
   * @returns `null` if there is no state
   * @throws InvalidInputError (`UNKNOWN_STEP`) if the plan is known and has no such step
   */
  async setActiveStep(sessionId: string, step: string | undefined): Promise<OrchestrationState | null> {
    this.assertStep(step);
    const { states } = this;
    const plan = step !== undefined && states.plan && { plan: states.plan.signature };
    const appended = await states.append(sessionId, [{ type: 'step', step: step ?? null, ...plan }]);
    return appended && appended.state;
  }

  /**
   * Records a tool use without other changes (ORC-07). Creates the state if it does not exist.
   * @throws HandlerError (`TOOL_CALL_CONFLICT`) if the `callId` was used with another tool or input
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

  /**
   * Advances the sequence by one item, up to the end of the active step's sequence if the plan is known (ORC-08).
   * @returns `null` if there is no state
   */
  async advanceSequence(sessionId: string): Promise<OrchestrationState | null> {
    const { states } = this;
    const plan = states.plan && { plan: states.plan.signature };
    const appended = await states.append(sessionId, [{ type: 'advance', ...plan }]);
    return appended && appended.state;
  }

  /**
   * Adds to the tokens that the session has used (ORC-11). Creates the state if it does not exist. @throws
   * InvalidInputError
   */
  async addTokenUsage(sessionId: string, usage: TokenCountsInput): Promise<OrchestrationState> {
    const entry = { type: 'tokens', usage: toTokenCounts(usage) } as const;
    const { state } = (await this.states.append(sessionId, [entry], { create: true }))!;
    return state;
  }

  /** Replaces the state with the defaults, and returns them (ORC-09). */
  async resetState(sessionId: string): Promise<OrchestrationState> {
    return this.states.reset(sessionId);
  }

  /** Deletes the state. @returns true if it existed */
  async removeSession(sessionId: string): Promise<boolean> {
    return this.states.delete(sessionId);
  }

  /** Alias of {@link removeSession}. */
  cleanupSession(sessionId: string): Promise<boolean> {
    return this.removeSession(sessionId);
  }

  /** Returns the state for a prompt (ORC-10). @returns `null` if it does not exist */
  async toAIOrchestrationState(sessionId: string): Promise<AIOrchestrationState | null> {
    const { states } = this;
    const state = await states.read(sessionId);
    return state && toAIState(state, states.plan);
  }

  /**
   * Removes expired states, and the longest idle states of all agents beyond `maxSessions` (ORC-13). This also runs
   * automatically at intervals, unless the `cleanup` option disables it.
   * @returns the number of removed documents. It includes expired documents of state modules and session managers, because the store
   * removes expired documents of every kind
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
    if (!plan || stepNamed(plan, step)) return;
    const known = plan.steps.map(({ name }) => name).join(', ') || 'none';
    throw new InvalidInputError(
      'step',
      `must be a step of the plan: ${known}. Received: ${JSON.stringify(step)}.`,
      'UNKNOWN_STEP',
    );
  }
}

function stepsOf(config: OrchestrationConfig): number {
  return defineStepPlan({ ...config, agent: 'config' }).steps.length;
}
