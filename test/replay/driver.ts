import { type Cast } from './cast.js';
import { type LaneWatch } from './lane-watch.js';
import { type RecordedConversation, turnsOf } from './record.js';

/** Turns of one conversation that are under way at once: the lane always has a queue, so that its order is tested. */
const AHEAD = 3;
const STALLED_AFTER_MS = 60_000;

export interface PlayOptions {
  /** A worker is killed after this many settled turns, again and again. */
  readonly killEvery?: number;
  readonly lanes: LaneWatch;
  readonly onSettled: () => void;
}

/** Ids of the turns of each conversation, in the order in which they were submitted. */
export type SubmittedTurns = ReadonlyMap<string, readonly string[]>;

/**
 * Plays all conversations side by side: each says what its user said, message by message, a little ahead of the answers.
 * @throws when a turn does not end well, or none ends for a minute
 */
export async function play(
  records: readonly RecordedConversation[],
  cast: Cast,
  { killEvery = Infinity, lanes, onSettled }: PlayOptions,
): Promise<SubmittedTurns> {
  let settled = 0;
  let killAt = killEvery;
  const stalled = setTimeout(
    () => cast.front.fail(new Error(`No turn settled for ${STALLED_AFTER_MS / 1000} seconds.`)),
    STALLED_AFTER_MS,
  );
  const countSettled = (): void => {
    settled += 1;
    stalled.refresh();
    onSettled();
    if (settled < killAt || !cast.kill()) return;
    killAt = settled + killEvery;
    lanes.killed();
  };
  try {
    return new Map(
      await Promise.all(
        records.map(async (record) => [record.id, await converse(record, cast, lanes, countSettled)] as const),
      ),
    );
  } finally {
    clearTimeout(stalled);
  }
}

async function converse(
  record: RecordedConversation,
  { front }: Cast,
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
