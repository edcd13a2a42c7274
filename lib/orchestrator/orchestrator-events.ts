import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { EventStream } from '../common/event-stream.js';
import { type CompactionEvent } from '../conversation/compaction-events.js';
import { type Session } from '../ledger/session.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';
import { type SettledTurnStatus } from '../ledger/turn.js';
import { type DecisionSource } from './turn-report.js';

/** A step in the lifecycle of a turn (BOT-10). @inline */
export type OrchestratorEventBody =
  | { readonly type: 'turn-starting'; readonly attempt: number }
  | { readonly type: 'session-loaded'; readonly session: Session; readonly turnIndex: number }
  | {
      readonly type: 'drift-checked';
      /**
       * True if a different structure wrote the last checkpoint; the turn continues after a migration or with `force`.
       */
      readonly drifted: boolean;
      /** The versions that the state was migrated through, the saved one first; empty without a migration. */
      readonly migrated: readonly string[];
    }
  | {
      readonly type: 'history-windowed';
      readonly for: 'router' | 'agents';
      /** The number of messages that were available, and the number kept. */
      readonly available: number;
      readonly kept: number;
    }
  /** Emitted before dispatch. */
  | {
      readonly type: 'routed';
      readonly iteration: number;
      readonly source: DecisionSource;
      readonly intents: readonly string[];
      readonly reasoning?: string;
    }
  /** An event that the handler emitted, see `turn.emit`. */
  | { readonly type: 'delta'; readonly event: NewTurnEvent }
  | { readonly type: 'checkpoint-persisted'; readonly turnIndex: number }
  /** The turn has settled in this process. This is its last event, and is emitted once. */
  | {
      readonly type: 'turn-settled';
      readonly status: SettledTurnStatus;
      readonly turnIndex?: number;
      /** The code of the error that ended the turn. */
      readonly code?: string;
    };

/**
 * An event of a turn or of a compaction. Compaction runs beside the turns: its events can follow `turn-settled`, and
 * belong to no turn.
 */
export type OrchestratorEvent =
  | ({
      readonly orchestrator: string;
      readonly sessionId: string;
      readonly turnId: string;
    } & OrchestratorEventBody)
  | CompactionEvent;

/** The event types of {@link OrchestratorEvents}. */
export type OrchestratorEventType = OrchestratorEvent['type'];

/** Listeners by type of event. Errors that they throw are logged and do not affect the turn. */
export type OrchestratorListeners = {
  readonly [Type in OrchestratorEventType]?: (event: Extract<OrchestratorEvent, { readonly type: Type }>) => unknown;
};

/**
 * Emits the events of all turns that this process runs, of every orchestrator (BOT-10). Injectable. A turn that ends
 * without a worker (cancelled in the queue, or superseded) emits nothing here: read its record or `turns.events`.
 */
export class OrchestratorEvents extends EventStream<OrchestratorEvent> {}

/** Calls listeners. Errors that they throw are logged and have no other effect. */
export function notifyListeners(
  logger: Logger,
  event: OrchestratorEvent,
  listeners: readonly (((event: OrchestratorEvent) => unknown) | undefined)[],
): void {
  for (const listener of listeners) {
    if (!listener) continue;
    // Runs inside a promise to catch rejections of async listeners as well.
    new Promise((resolve) => resolve(listener(event))).catch((error: unknown) => {
      logger.error(`A listener of ${event.type} events threw.`, traceOf(error));
    });
  }
}
