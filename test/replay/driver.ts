import { type Actors } from './actors.js';
import { type LaneWatch } from './lane-watch.js';
import { type RecordedConversation, turnsOf } from './record.js';

/** Number of pending turns per conversation, so that the lane always has a queue and its order is tested. */
const AHEAD = 3;
const STALLED_AFTER_MS = 60_000;

export interface RunOptions {
  /** Kills a worker each time after this many settled turns. */
  readonly killEvery?: number;
  readonly lanes: LaneWatch;
  readonly onSettled: () => void;
}

/** Ids of the turns of each conversation, in the order in which they were submitted. */
export type SubmittedTurns = ReadonlyMap<string, readonly string[]>;

/**
 * Replays all conversations concurrently. Each submits the messages of its user in order, a few ahead of the answers.
 * @throws if a turn does not succeed, or no turn settles for a minute
 */
export async function run(
  records: readonly RecordedConversation[],
  actors: Actors,
  { killEvery = Infinity, lanes, onSettled }: RunOptions,
): Promise<SubmittedTurns> {
  let settled = 0;
  let killAt = killEvery;
  const stalled = setTimeout(
    () => actors.front.fail(new Error(`No turn settled for ${STALLED_AFTER_MS / 1000} seconds.`)),
    STALLED_AFTER_MS,
  );
  const countSettled = (): void => {
    settled += 1;
    stalled.refresh();
    onSettled();
    if (settled < killAt || !actors.kill()) return;
    killAt = settled + killEvery;
    lanes.killed();
  };
  try {
    return new Map(
      await Promise.all(
        records.map(async (record) => [record.id, await converse(record, actors, lanes, countSettled)] as const),
      ),
    );
  } finally {
    clearTimeout(stalled);
  }
}

async function converse(
  record: RecordedConversation,
  { front }: Actors,
  lanes: LaneWatch,
  onSettled: () => void,
): Promise<readonly string[]> {
  const turnIds: string[] = [];
  const settled: Promise<void>[] = [];
  for (const turn of turnsOf(record).keys()) {
    await settled[turn - AHEAD];
    const turnId = await front.call('submit', record.id, turn);
    turnIds.push(turnId);
    lanes.submitted(record.id);
    const ended = front.call('settled', turnId).then(() => {
      lanes.settled(record.id);
      onSettled();
    });
    // It is awaited later; until then a rejection must not end the process.
    ended.catch(() => undefined);
    settled.push(ended);
  }
  await Promise.all(settled);
  return turnIds;
}
