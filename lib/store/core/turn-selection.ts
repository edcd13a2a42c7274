import { isTerminal, type TurnStatus } from '../../ledger/turn.js';
import { type TurnQuery } from '../../ledger/turn.store.js';

/** A query for turns with its defaults, as every store reads it. */
export interface TurnSelection {
  readonly sessionId: string;
  /** `null`: turns in every status. */
  readonly statuses: readonly TurnStatus[] | null;
  /** No terminal status is asked for, so that an index of open turns answers, at no cost for the lane's history. */
  readonly isOpen: boolean;
  readonly isLatestFirst: boolean;
  /** The selected turns come after this position in the order asked for. */
  readonly after: number;
}

export function selectionOf({ sessionId, status, order = 'asc', after }: TurnQuery): TurnSelection {
  const statuses = status === undefined ? null : typeof status === 'string' ? [status] : status;
  const isLatestFirst = order === 'desc';
  return {
    sessionId,
    statuses,
    isOpen: statuses !== null && !statuses.some(isTerminal),
    isLatestFirst,
    after: after ?? (isLatestFirst ? Number.MAX_SAFE_INTEGER : 0),
  };
}
