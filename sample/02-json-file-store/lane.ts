import { type Turn, TurnFencedError, type TurnHold } from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { type LaneRow, ms, type TurnRow } from './tables.js';

/** How long a lane whose ring was lost waits until it is offered. */
const LOST_RING_MS = 1000;

/** The longest that an offered lane waits until it is offered again. */
const LONGEST_PUT_OFF_MS = 5000;

/** An `attentionAt` before that of every lane that waits. */
export const BEFORE_OTHERS = 0;

/** The id of the row that stands for all lanes: no session has it. */
export const ALL_LANES = '';

export function headOf(store: Store, sessionId: string): TurnRow | undefined {
  return store.turns.first('open', [sessionId]);
}

export function newLane(store: Store, sessionId: string): LaneRow {
  return { sessionId, nextPosition: 1, fence: store.now, offers: 0 };
}

/** Whether it waits for nothing but a worker. */
export function isDue(store: Store, turn: Turn | undefined): boolean {
  if (turn?.status === 'queued') return turn.dueAt === undefined || ms(turn.dueAt) <= store.now;
  const until = turn?.waitingFor?.until;
  return until !== undefined && ms(until) <= store.now;
}

/**
 * Stores the lane, and when somebody must look at it next.
 * @param offerAt when a queued head that is due is offered; default: a while after the caller's ring
 * @returns whether the head is due and nobody runs it: ring
 */
export function watch(store: Store, lane: LaneRow, offerAt = store.now + LOST_RING_MS): boolean {
  const head = headOf(store, lane.sessionId)?.turn;
  const due = isDue(store, head);
  store.lanes.put({ ...lane, attentionAt: due && head?.status === 'queued' ? offerAt : attentionTime(head, lane) });
  return due;
}

function attentionTime(head: Turn | undefined, { running }: LaneRow): number | undefined {
  if (head?.status === 'running') return running?.leaseEnd;
  const time = head?.waitingFor?.until ?? head?.dueAt;
  return time === undefined ? undefined : ms(time);
}

export interface Held {
  readonly lane: LaneRow;
  readonly row: TurnRow;
}

/** The turn that the hold is for, and its lane. @throws TurnFencedError when the hold is over */
export function held(store: Store, { sessionId, turnId, fence }: TurnHold): Held {
  const lane = store.lanes.get(sessionId);
  const row = store.turns.get(turnId);
  if (!lane || !row || lane.running?.turnId !== turnId || lane.fence !== fence) {
    throw new TurnFencedError(sessionId, turnId, fence);
  }
  return { lane, row };
}

/**
 * The earliest first; each is put off until somebody claims.
 * @param includeOffered includes those that were put off
 */
export function dueLanes(store: Store, limit: number, includeOffered = false): string[] {
  if (store.lanes.get(ALL_LANES)?.mode === 'paused') return [];
  const lanes: LaneRow[] = [];
  for (const lane of store.lanes.by('attention', [])) {
    if (lane.attentionAt! > store.now + (includeOffered ? LONGEST_PUT_OFF_MS : 0)) break;
    if (lane.attentionAt! <= store.now || lane.offers > 0) lanes.push(lane);
    if (!includeOffered && lanes.length === limit) break;
  }
  if (includeOffered) lanes.sort((a, b) => firstAttention(a) - firstAttention(b));
  return lanes.slice(0, limit).map((lane) => {
    const attentionAt = store.now + Math.min(1000 * 2 ** lane.offers, LONGEST_PUT_OFF_MS);
    store.lanes.put({ ...lane, attentionAt, offers: lane.offers + 1, firstAttentionAt: firstAttention(lane) });
    return lane.sessionId;
  });
}

function firstAttention({ offers, attentionAt = 0, firstAttentionAt = 0 }: LaneRow): number {
  return offers > 0 ? firstAttentionAt : attentionAt;
}

/** Whoever ran these turns was the process before this one. */
export function lapseLeases(store: Store): void {
  for (const lane of store.lanes.by('attention', [])) {
    if (lane.attentionAt! > store.now && lane.running) {
      watch(store, { ...lane, running: { ...lane.running, leaseEnd: store.now } });
    }
  }
}
