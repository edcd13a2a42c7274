import { isDeepStrictEqual } from 'node:util';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { AgentOrchestration, type OrchestrationParts } from './agent-orchestration.js';
import { orchestrationMessages } from './orchestration.messages.js';
import { type StepPlan } from './step-plan.js';

/** The name of the agent if no agent has a plan. */
const DEFAULT_AGENT = 'default';

/** The agents of this process that have a plan, and the states of all agents. */
export class OrchestrationAgents {
  private readonly plans = new Map<string, StepPlan>();
  private readonly agents = new Set<string>();
  private isComplete = false;

  constructor(readonly parts: OrchestrationParts) {}

  /** @throws SessionsConfigurationError if the agent has a different plan */
  register(plan: StepPlan): void {
    const known = this.plans.get(plan.agent);
    if (known && !isDeepStrictEqual(known, plan)) {
      throw new SessionsConfigurationError(
        `The agent ${JSON.stringify(plan.agent)} has two step plans. Register one plan per agent.`,
      );
    }
    this.plans.set(plan.agent, plan);
    this.add(plan.agent);
  }

  /** Adds an agent, with or without a plan. */
  add(agent: string): void {
    this.agents.add(agent);
  }

  /** Called when all agents are registered: from now on, an unknown name is an error. */
  complete(): void {
    this.isComplete = true;
  }

  /** @throws SessionsConfigurationError for an agent that is not registered (FIX-27) */
  assertKnown(agent: string): void {
    if (!this.isComplete || this.agents.has(agent)) return;
    throw new SessionsConfigurationError(orchestrationMessages.unknownAgent(agent, [...this.agents]));
  }

  /** The namespace of the states. */
  get namespace(): string {
    return this.parts.settings.namespace;
  }

  all(): readonly StepPlan[] {
    return [...this.plans.values()];
  }

  /** Stores the plans, so that the first tool use does not have to. Failures are retried then. */
  async publish(): Promise<void> {
    await Promise.allSettled(this.all().map((plan) => this.parts.catalog.publish(plan)));
  }

  /** @param name default: the only agent that has a plan. @throws SessionsConfigurationError if there are several */
  get(name?: string): AgentOrchestration {
    const agent = name ?? this.only();
    return new AgentOrchestration(agent, this.plans.get(agent), this.parts);
  }

  private only(): string {
    const [first = DEFAULT_AGENT, ...others] = this.plans.keys();
    if (others.length === 0) return first;
    throw new SessionsConfigurationError(
      `The agent is missing: ${[first, ...others].join(', ')} have plans. Select one with .of(agent).`,
    );
  }
}
