import { type ExecutionContext, Injectable, type PipeTransform } from '@nestjs/common';
import { type AgentRef } from '../orchestration/agent-ref.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { type OrchestrationState } from '../orchestration/orchestration-state.js';
import { sessionOf } from './carried-session.js';
import { sessionParameter } from './session-parameter.js';

/** The options of `@CurrentOrchestrationState`. */
export interface AgentOfState {
  /** The agent of the state. Default: the only agent with a plan. */
  readonly agent?: AgentRef;
}

interface NamedState extends AgentOfState {
  readonly sessionId: string | undefined;
}

/** Loads the state. Parameter decorators cannot inject providers, but their pipes can. */
@Injectable()
export class OrchestrationStatePipe implements PipeTransform<NamedState, Promise<OrchestrationState | undefined>> {
  constructor(private readonly states: OrchestrationStateManager) {}

  async transform({ agent, sessionId }: NamedState): Promise<OrchestrationState | undefined> {
    if (sessionId === undefined) return undefined;
    const states = agent === undefined ? this.states : this.states.of(agent);
    return (await states.getState(sessionId)) ?? undefined;
  }
}

const StateOfSession = sessionParameter(
  '@CurrentOrchestrationState()',
  ({ agent }: AgentOfState, context: ExecutionContext): NamedState => ({
    agent,
    sessionId: sessionOf(context, 'asks for @CurrentOrchestrationState()')?.id,
  }),
);

/**
 * Injects the read-only progress of an agent's plan in the session that `SessionGuard` loaded (NST-13); `undefined` if
 * no state is stored. To change it, use `OrchestrationStateManager`.
 */
export const CurrentOrchestrationState = (options: AgentOfState = {}): ParameterDecorator =>
  StateOfSession(options, OrchestrationStatePipe);
