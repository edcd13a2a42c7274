import { createParamDecorator, type ExecutionContext, Injectable, type PipeTransform } from '@nestjs/common';
import { type AgentRef } from '../orchestration/agent-ref.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { type OrchestrationState as State } from '../orchestration/orchestration-state.js';
import { sessionOf } from './carried-session.js';

/** Which state `@OrchestrationState` gives. */
export interface AgentOfState {
  /** Whose state it is. Default: the only agent that has a plan. */
  readonly agent?: AgentRef;
}

interface NamedState extends AgentOfState {
  readonly sessionId: string | undefined;
}

/** Reads it. Decorators of parameters cannot inject, so theirs brings a pipe that can. */
@Injectable()
export class OrchestrationStatePipe implements PipeTransform<NamedState, Promise<State | undefined>> {
  constructor(private readonly states: OrchestrationStateManager) {}

  async transform({ agent, sessionId }: NamedState): Promise<State | undefined> {
    if (sessionId === undefined) return undefined;
    const states = agent === undefined ? this.states : this.states.of(agent);
    return (await states.getState(sessionId)) ?? undefined;
  }
}

const StateOfSession = createParamDecorator(({ agent }: AgentOfState, context: ExecutionContext): NamedState => {
  return { agent, sessionId: sessionOf(context, '@OrchestrationState()')?.id };
});

/** What is known of an agent in a session (ORC-01). @interface */
export type OrchestrationState = State;

/**
 * How far an agent is in its plan in the session that `SessionGuard` found, to read (NST-13); `undefined` while nothing is kept of
 * it. Changes are made by `OrchestrationStateManager`.
 */
export const OrchestrationState = (options: AgentOfState = {}): ParameterDecorator =>
  StateOfSession(options, OrchestrationStatePipe);
