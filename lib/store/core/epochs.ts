import { type LaneRow, type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/**
 * Epochs of namespaces. A reset starts a new epoch in the lane of its session. A turn stores the epochs of its first claim.
 * Writes that belong to an earlier epoch are rejected (STA-23).
 */

type Epochs = Readonly<Record<string, string>>;

export function epochsOf({ epochs }: Pick<LaneRow, 'epochs'>): Epochs {
  return epochs === null ? {} : (JSON.parse(epochs) as Epochs);
}

export function beginEpoch(tx: Transaction, lane: LaneRow, namespaces: readonly string[], epoch: string): void {
  const begun = Object.fromEntries(namespaces.map((namespace) => [namespace, epoch]));
  tx.lanes.update(lane.sessionId, { epochs: JSON.stringify({ ...epochsOf(lane), ...begun }) });
}

/** Returns those of the namespaces that were reset after the first claim of the turn. */
export function resetSince(lane: LaneRow, turn: TurnRow, namespaces: readonly string[]): string[] {
  if (lane.epochs === turn.epochs || turn.startedAt === null) return [];
  const [then, since] = [turn, lane].map((row) => new Map(Object.entries(epochsOf(row))));
  return namespaces.filter((namespace) => then.get(namespace) !== since.get(namespace));
}
