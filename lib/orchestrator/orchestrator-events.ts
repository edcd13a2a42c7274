import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { EventStream } from '../common/event-stream.js';
import { type CompactionEvent } from '../conversation/compaction-events.js';
import { type Session } from '../ledger/session.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';
import { type SettledTurnStatus } from '../ledger/turn.js';
import { type DecisionSource } from './turn-report.js';

/** A point in the life of a turn (BOT-10). @inline */
export type OrchestratorEventBody =
  | { readonly type: 'turn-starting'; readonly attempt: number }
  | { readonly type: 'session-loaded'; readonly session: Session; readonly turnIndex: number }
  | {
      readonly type: 'drift-checked';
      /** Whether another structure wrote the last checkpoint; the turn goes on by a migration or by `force`. */
      readonly drifted: boolean;
      /** The versions that the state went through, the saved one first; empty without a migration. */
      readonly migrated: readonly string[];
    }
  | {
      readonly type: 'history-windowed';
      readonly for: 'router' | 'agents';
      /** Messages that were there to choose from, and those that were taken. */
      readonly available: number;
      readonly kept: number;
    }
  /** Before dispatch. */
  | {
      readonly type: 'routed';
      readonly iteration: number;
      readonly source: DecisionSource;
      readonly intents: readonly string[];
      readonly reasoning?: string;
    }
  /** What the handler emitted, see `turn.emit`. */
  | { readonly type: 'delta'; readonly event: NewTurnEvent }
  | { readonly type: 'checkpoint-persisted'; readonly turnIndex: number }
  /** The turn has settled in this process: its last event, and told once. */
  | {
      readonly type: 'turn-settled';
      readonly status: SettledTurnStatus;
      readonly turnIndex?: number;
      /** Of the error that ended it. */
      readonly code?: string;
    };

/** Compaction comes beside the turns: its events may follow `turn-settled`, and belong to no turn. */
export type OrchestratorEvent =
  | ({
      readonly orchestrator: string;
      readonly sessionId: string;
      readonly turnId: string;
    } & OrchestratorEventBody)
  | CompactionEvent;

/** What {@link OrchestratorEvents} tells of. */
export type OrchestratorEventType = OrchestratorEvent['type'];

/** A listener by the type of event. What it throws is logged, and harms nothing. */
export type OrchestratorListeners = {
  readonly [Type in OrchestratorEventType]?: (event: Extract<OrchestratorEvent, { readonly type: Type }>) => unknown;
};

/**
 * Tells what happens to turns that this process runs, of every orchestrator (BOT-10). Injectable. A turn that ends without a
 * worker (cancelled while it is queued, superseded) is not heard of here: its record and `turns.events` have its end.
 */
export class OrchestratorEvents extends EventStream<OrchestratorEvent> {}

/** What they throw is logged, and harms nothing. */
export function tellListeners(
  logger: Logger,
  event: OrchestratorEvent,
  listeners: readonly (((event: OrchestratorEvent) => unknown) | undefined)[],
): void {
  for (const listener of listeners) {
    if (!listener) continue;
    // Inside a promise, so that an async listener's rejection is caught as well.
    new Promise((resolve) => resolve(listener(event))).catch((error: unknown) => {
      logger.error(`A listener of ${event.type} events threw.`, traceOf(error));
    });
  }
}
