import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { CONVERSATION_NAMESPACE } from '../ledger/namespaces.js';
import { type MessageSpan } from '../ledger/message.js';

/** Returns the epoch of a session's message log, see StateStore.reset; '' until its first reset. */
export function logOf({ epochs }: Pick<ClaimedTurn, 'epochs'>): string {
  return epochs[CONVERSATION_NAMESPACE] ?? '';
}

/** Returns whether the positions of a checkpoint refer to this log. */
export function isOfLog({ log = '' }: Pick<Checkpoint, 'log'>, present: string): boolean {
  return log === present;
}

/** Returns the positions of messages in this log that were undone. */
export function undoneIn(checkpoint: Pick<Checkpoint, 'log' | 'undone'> | null, log: string): readonly MessageSpan[] {
  return checkpoint && isOfLog(checkpoint, log) ? (checkpoint.undone ?? []) : [];
}

/** Returns the log's epoch for a new checkpoint. */
export function ofLog(log: string): Pick<Checkpoint, 'log'> {
  return log === '' ? {} : { log };
}
