import { type TurnSpending } from '../../ledger/turn-usage.js';
import { applyStateChanges } from './documents.js';
import { resetSince } from './epochs.js';
import { type LaneRow, type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/** Records the tokens that a held turn used. @returns the updated turn */
export function recordSpending(
  tx: Transaction,
  { lane, turn }: { readonly lane: LaneRow; readonly turn: TurnRow },
  spending: TurnSpending | undefined,
): TurnRow {
  if (!spending) return turn;
  const { usage, change } = spending;
  const spent = JSON.stringify(usage);
  tx.turns.update(turn.id, { spent });
  const isCounted = change && resetSince(lane, turn, [change.name.namespace]).length === 0;
  if (isCounted) applyStateChanges(tx, turn.sessionId, [change]);
  return { ...turn, spent };
}
