import { isDeepStrictEqual } from 'node:util';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { AgentOrchestration, type OrchestrationParts } from './agent-orchestration.js';
import { type StepPlan } from './step-plan.js';

/** Whose states are meant when there is no plan that says. */
const NOBODY = 'default';

/** The agents of this process that have a plan, and the states of all. */
export class OrchestrationAgents {
  private readonly plans = new Map<string, StepPlan>();
  private readonly agents = new Set<string>();
  private isComplete = false;

  constructor(readonly parts: OrchestrationParts) {}

  /** @throws SessionsConfigurationError when another plan has the agent */
  register(plan: StepPlan): void {
    const known = this.plans.get(plan.agent);
    if (known && !isDeepStrictEqual(known, plan)) {
      throw new SessionsConfigurationError(
        `Two step plans are of the agent ${JSON.stringify(plan.agent)}; an agent has one.`,
      );
    }
    this.plans.set(plan.agent, plan);
    this.add(plan.agent);
  }

  /** An agent that may have no plan. */
  add(agent: string): void {
    this.agents.add(agent);
  }

  /** All agents are registered: from now on an unknown name is an error. */
  complete(): void {
    this.isComplete = true;
  }

  /** @throws SessionsConfigurationError for an agent that is not registered (FIX-27) */
  assertKnown(agent: string): void {
    if (!this.isComplete || this.agents.has(agent)) return;
    const known = [...this.agents].join(', ') || 'none';
    throw new SessionsConfigurationError(
      `The agent ${JSON.stringify(agent)} is unknown. Registered are: ${known}. Register it with SessionsModule.forFeature([...]).`,
    );
  }

  /** Where the states are. */
  get namespace(): string {
    return this.parts.settings.namespace;
  }

  all(): readonly StepPlan[] {
    return [...this.plans.values()];
  }

  /** Stores the plans, so that the first use of a tool need not. What fails is tried again then. */
  async publish(): Promise<void> {
    await Promise.allSettled(this.all().map((plan) => this.parts.catalog.publish(plan)));
  }

  /** @param name left out: the only agent that has a plan. @throws SessionsConfigurationError when there are several */
  get(name?: string): AgentOrchestration {
    const agent = name ?? this.only();
    return new AgentOrchestration(agent, this.plans.get(agent), this.parts);
  }

  private only(): string {
    const [first = NOBODY, ...others] = this.plans.keys();
    if (others.length === 0) return first;
    throw new SessionsConfigurationError(
      `The agent must be given: ${[first, ...others].join(', ')} have plans. Say which one is meant with .of(agent).`,
    );
  }
}
