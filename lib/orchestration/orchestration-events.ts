import { EventStream } from '../common/event-stream.js';
import { type OrchestrationEffect } from './orchestration-entry.js';

/** An event of an agent's orchestration in a session (ORC-32). */
export type OrchestrationEvent = { readonly agent: string; readonly sessionId: string } & (
  | OrchestrationEffect
  /** A call, or a turn that settled, created the state. */
  | { readonly type: 'created' }
  /** `resetState` replaced the state with the defaults. */
  | { readonly type: 'reset' }
  /** `removeSession` or `cleanupSession` removed the state. */
  | { readonly type: 'removed' }
  | { readonly type: 'token-budget-exceeded'; readonly usedTokens: number; readonly tokenBudget: number }
);

/** The event types of {@link OrchestrationEvents}. */
export type OrchestrationEventType = OrchestrationEvent['type'];

/**
 * Emits changes that this process made to orchestration states, after they are stored. Changes of a turn are emitted
 * after it settled. Injectable. Changes by other processes are not emitted.
 */
export class OrchestrationEvents extends EventStream<OrchestrationEvent> {}
