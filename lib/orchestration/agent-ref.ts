import { assertName } from '../common/ids.js';
import { type OrchestratorRef, orchestratorName } from './orchestrator-ref.js';
import { type StepPlan } from './step-plan.js';

/** Identifies an agent: an orchestrator, a plan, or a name. */
export type AgentRef = OrchestratorRef | StepPlan | string;

/** @throws InvalidInputError, or SessionsConfigurationError for a class that is not an orchestrator */
export function agentName(agent: AgentRef): string {
  const name = typeof agent === 'object' && 'agent' in agent ? agent.agent : nameOf(agent);
  assertName(name, 'agent');
  return name;
}

function nameOf(agent: string | OrchestratorRef): string {
  return typeof agent === 'string' ? agent : orchestratorName(agent);
}
