import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import { traceOf } from '../../common/error-trace.js';
import { type Turn } from '../../ledger/turn.js';

const logger = new Logger('AgentSessions');

/** Notifies the listeners of this process that a turn changed. */
export class TurnChangeEmitter {
  private readonly events = new EventEmitter().setMaxListeners(0);

  /** @returns ends the subscription */
  subscribe(listener: (turnId: string, turn?: Turn) => void): () => void {
    const harmless = (turnId: string, turn?: Turn): void => {
      try {
        listener(turnId, turn);
      } catch (error) {
        // The change is already committed, so an error of a listener must not reach the writer.
        logger.error('A listener of turn changes threw.', traceOf(error));
      }
    };
    this.events.on('changed', harmless);
    return () => this.events.off('changed', harmless);
  }

  emit(turnId: string, turn?: Turn): void {
    this.events.emit('changed', turnId, turn);
  }
}
