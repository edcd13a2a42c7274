import { isDone, mayBeDone } from './calls.js';
import { type Interval, type Run, type SessionRun, type TurnRun } from './run.js';

/** A period in which a lane had work that a worker could have done, but made no progress. */
export interface Stall extends Interval {
  readonly sessionId: string;
  /** A turn that was open during the whole period. */
  readonly turnId: string;
  /** The duration without outages and waits for signals. */
  readonly lengthUs: number;
}

/** Returns the longest stall of each lane that ever had work. */
export function longestStalls(run: Run): Stall[] {
  return run.sessions.flatMap((session) => {
    const stalls = stallsOf(session, run);
    return stalls.length === 0 ? [] : [stalls.reduce((a, b) => (b.lengthUs > a.lengthUs ? b : a))];
  });
}

function stallsOf(session: SessionRun, run: Run): Stall[] {
  const { sessionId } = session;
  const progress = progressOf(session);
  const excused = merged([...run.outages, ...session.turns.flatMap(waitsOf)]);
  return busyTimes(session.turns, run.endsAt).flatMap(({ from, to, turnId }) => {
    const inside = progress.slice(firstAfter(progress, from), firstAfter(progress, to));
    const moments = [from, ...inside, to];
    return moments.slice(1).map((end, index) => {
      const stretch = { from: moments[index], to: end };
      return { sessionId, turnId, ...stretch, lengthUs: end - stretch.from - overlap(stretch, excused) };
    });
  });
}

/** Returns the times of progress of a lane: a claim, a settle or a release. */
function progressOf({ grants, fenced }: SessionRun): number[] {
  const moments = grants.map(({ answeredAt }) => answeredAt);
  for (const call of fenced) {
    if (isDone(call) && call.op !== 'renew' && call.op !== 'append') moments.push(call.answeredAt);
  }
  return moments.sort((a, b) => a - b);
}

/** Returns the periods in which the lane certainly had an open turn. */
function busyTimes(turns: readonly TurnRun[], endsAt: number): (Interval & { readonly turnId: string })[] {
  const times = turns
    .map((turn) => ({ turnId: turn.turnId, from: openBy(turn), to: Math.min(turn.mayHaveEndedAt ?? 0, endsAt) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from);
  const busy: (Interval & { turnId: string })[] = [];
  for (const { from, to, turnId } of times) {
    const last = busy.at(-1);
    if (!last || from > last.to) busy.push({ from, to, turnId });
    else if (to > last.to) busy[busy.length - 1] = { from: last.from, to, turnId };
  }
  return busy;
}

/** Returns the first time at which a caller knew that the turn exists. */
function openBy({ submits, grants, stored }: TurnRun): number {
  if (!stored) return Infinity;
  return Math.min(...[...submits.filter(isDone), ...grants].map(({ answeredAt }) => answeredAt));
}

/** Returns the periods in which the lane waits for a signal: until it arrives, or the turn is claimed again. */
function waitsOf({ fenced, clients, grants, mayHaveEndedAt }: TurnRun): Interval[] {
  return fenced.flatMap((call) => {
    if (call.op !== 'wait' || !mayBeDone(call) || (isDone(call) && call.value.status !== 'waiting')) return [];
    const { fence, signal } = call.args;
    const signalled = clients
      .filter((given) => given.op === 'signal' && isDone(given) && given.value.accepted && given.args.name === signal)
      .map(({ answeredAt }) => answeredAt);
    const claimed = grants.find((grant) => grant.fence > fence)?.answeredAt ?? Infinity;
    const to = Math.min(...signalled, claimed, mayHaveEndedAt ?? Infinity);
    return to > call.sentAt ? [{ from: call.sentAt, to }] : [];
  });
}

/** Merges overlapping periods, in order. */
function merged(intervals: readonly Interval[]): Interval[] {
  const all: Interval[] = [];
  for (const { from, to } of [...intervals].sort((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (!last || from > last.to) all.push({ from, to });
    else if (to > last.to) all[all.length - 1] = { from: last.from, to };
  }
  return all;
}

function overlap({ from, to }: Interval, intervals: readonly Interval[]): number {
  let sum = 0;
  for (const other of intervals) sum += Math.max(0, Math.min(to, other.to) - Math.max(from, other.from));
  return sum;
}

/** @returns the number of sorted times that are not after this one */
function firstAfter(moments: readonly number[], moment: number): number {
  let low = 0;
  for (let high = moments.length; low < high;) {
    const middle = (low + high) >> 1;
    if (moments[middle] <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}
