import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { CONVERSATION_NAMESPACE } from '../ledger/module-namespace.js';
import { type MessageSpan } from '../ledger/message.js';

/** The epoch of a session's message log, see StateStore.reset; '' until that is reset for the first time. */
export function logOf({ epochs }: Pick<ClaimedTurn, 'epochs'>): string {
  return epochs[CONVERSATION_NAMESPACE] ?? '';
}

/** What a checkpoint says of positions in a log counts for that log only. */
export function isOfLog({ log = '' }: Pick<Checkpoint, 'log'>, present: string): boolean {
  return log === present;
}

/** Where messages of the log stand that were taken back. */
export function undoneIn(checkpoint: Pick<Checkpoint, 'log' | 'undone'> | null, log: string): readonly MessageSpan[] {
  return checkpoint && isOfLog(checkpoint, log) ? (checkpoint.undone ?? []) : [];
}

/** For a new checkpoint. */
export function ofLog(log: string): Pick<Checkpoint, 'log'> {
  return log === '' ? {} : { log };
}
