import { type AwaitedTurn, type TurnHold } from '../../ledger/turn.store.js';
import { type LaneRow } from './rows.js';

interface Awaited {
  readonly fence: number;
  readonly turns: readonly AwaitedTurn[];
}

/** Returns the turns that an attempt waits for, as a lane stores them. */
export function toAwaited({ fence }: TurnHold, turns: readonly AwaitedTurn[]): string {
  const awaited: Awaited = { fence, turns: turns.map(({ sessionId, turnId }) => ({ sessionId, turnId })) };
  return JSON.stringify(awaited);
}

/** Returns the turns that the running attempt waits for. Those of an earlier attempt are ignored. */
export function awaitedBy(
  lane: Pick<LaneRow, 'awaited' | 'fence' | 'runningTurn'> | undefined,
): readonly AwaitedTurn[] {
  if (!lane || lane.awaited === null || lane.runningTurn === null) return [];
  const { fence, turns } = JSON.parse(lane.awaited) as Awaited;
  return fence === lane.fence ? turns : [];
}
