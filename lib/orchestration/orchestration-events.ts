import { EventStream } from '../common/event-stream.js';
import { type OrchestrationEffect } from './orchestration-entry.js';

/** What happened to the orchestration of an agent in a session (ORC-32). */
export type OrchestrationEvent = { readonly agent: string; readonly sessionId: string } & (
  | OrchestrationEffect
  /** The state was created, by a call or by a turn that settled. */
  | { readonly type: 'created' }
  /** `resetState` replaced the state by the defaults. */
  | { readonly type: 'reset' }
  /** `removeSession` or `cleanupSession` removed the state. */
  | { readonly type: 'removed' }
  | { readonly type: 'token-budget-exceeded'; readonly usedTokens: number; readonly tokenBudget: number }
);

/** What {@link OrchestrationEvents} tells of. */
export type OrchestrationEventType = OrchestrationEvent['type'];

/**
 * Tells what this process did to orchestration states, after it was stored: for what a turn did, after the turn settled.
 * Injectable. What other processes do is not heard here.
 */
export class OrchestrationEvents extends EventStream<OrchestrationEvent> {}
