import { isTerminal, type TurnStatus } from '../../ledger/turn.js';
import { type TurnQuery } from '../../ledger/turn.store.js';

/** A query for turns with defaults applied, for all stores. */
export interface TurnSelection {
  readonly sessionId: string;
  /** `null`: turns in every status. */
  readonly statuses: readonly TurnStatus[] | null;
  /** Whether only open statuses are selected. Then an index of open turns is used, and the lane's history costs nothing. */
  readonly isOpen: boolean;
  readonly isLatestFirst: boolean;
  /** The position after which the selection starts, in its order. */
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
