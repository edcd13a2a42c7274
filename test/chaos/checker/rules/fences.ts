import { type DoneCall, isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { contradictions } from '../in-order.js';
import { letsGo, LETTING_GO } from '../letting-go.js';
import { type FencedCall, type Grant, type Run, type SessionRun } from '../run.js';

/** Tolerance: the store counts in whole milliseconds, and its clock differs from that of the history. */
const CLOCK_SLACK_MS = 100;

/**
 * At any time only the worker with the latest fence may write for a session (TRN-03).
 * @param leaseMs the lease of a claim or a renewal, during which no other worker gets the turn; null if unknown
 */
export function* fences(run: Run, leaseMs: number | null): Generator<string> {
  for (const session of run.sessions) {
    yield* oneFenceEach(session);
    yield* growing(session);
    yield* writes(session);
    if (leaseMs !== null) yield* liveLeases(session, leaseMs * 1000);
  }
}

function* oneFenceEach({ sessionId, grants }: SessionRun): Generator<string> {
  for (const [index, grant] of grants.entries()) {
    const other = grants[index - 1];
    // A repeated settle hands over the same turn.
    if (!other || other.fence !== grant.fence || isSame(other, grant)) continue;
    yield `session ${sessionId}: two have the same fence: ${show.grant(other)}, and ${show.grant(grant)}`;
  }
}

function isSame(a: Grant, b: Grant): boolean {
  return a.process === b.process && a.turnId === b.turnId && a.firstSentAt === b.firstSentAt;
}

function* growing({ sessionId, grants }: SessionRun): Generator<string> {
  const pairs = contradictions(
    grants,
    ({ firstSentAt }) => firstSentAt,
    ({ answeredAt }) => answeredAt,
  );
  for (const [lower, higher] of pairs) {
    yield `session ${sessionId}: fences went back: ${show.grant(higher)} came before ${show.grant(lower)}`;
  }
}

/** The holder of the turn made every accepted write. */
function* writes({ sessionId, grants, fenced }: SessionRun): Generator<string> {
  const byFence = new Map(grants.map((grant) => [grant.fence, grant]));
  const laterThan = laterGrants(grants);
  const letGo = whenLetGo(fenced);
  for (const call of fenced.filter(isDone) as DoneCall<FencedCall['op']>[]) {
    const { fence, turnId } = call.args;
    const place = `session ${sessionId}, turn ${turnId}: ${show.call(call)}`;
    const held = byFence.get(fence);
    const later = laterThan(fence);
    const end = letGo.get(`${turnId} ${fence}`);
    if (held?.turnId !== turnId || held.process !== call.process) {
      yield `${place} was accepted, but ${held ? `that fence is of ${show.grant(held)}` : 'that fence was never granted'}`;
    } else if (later && later.answeredAt < call.firstSentAt) {
      yield `${place} was accepted after ${show.grant(later)}`;
    } else if (end && end.answeredAt < call.firstSentAt) {
      yield `${place} was accepted after ${show.call(end)}`;
    }
  }
}

/** Returns the first answered claim with a higher fence. */
function laterGrants(grants: readonly Grant[]): (fence: number) => Grant | undefined {
  const earliestFrom = [...grants];
  for (let index = grants.length - 2; index >= 0; index -= 1) {
    const next = earliestFrom[index + 1];
    if (next.answeredAt < earliestFrom[index].answeredAt) earliestFrom[index] = next;
  }
  return (fence) => {
    let low = 0;
    for (let high = grants.length; low < high;) {
      const middle = (low + high) >> 1;
      if (grants[middle].fence > fence) high = middle;
      else low = middle + 1;
    }
    return earliestFrom[low];
  };
}

/** Returns the call by which the worker has certainly released the turn, by turn and fence. */
function whenLetGo(fenced: readonly FencedCall[]): ReadonlyMap<string, FencedCall> {
  const ends = new Map<string, FencedCall>();
  for (const call of fenced) {
    if (!isDone(call) || !letsGo(call)) continue;
    const hold = `${call.args.turnId} ${call.args.fence}`;
    const known = ends.get(hold);
    if (!known || call.answeredAt < known.answeredAt) ends.set(hold, call);
  }
  return ends;
}

/** A turn is taken from its worker only after its lease has lapsed. */
function* liveLeases({ sessionId, grants, fenced }: SessionRun, leaseUs: number): Generator<string> {
  const renewals = new Map<number, number>();
  const letGo = new Map<number, number>();
  for (const call of fenced) {
    const { fence } = call.args;
    if (call.op === 'renew' && isDone(call)) renewals.set(fence, Math.max(renewals.get(fence) ?? 0, call.sentAt));
    if (LETTING_GO.includes(call.op) && mayBeDone(call)) {
      letGo.set(fence, Math.min(letGo.get(fence) ?? Infinity, call.firstSentAt));
    }
  }
  for (const [index, held] of grants.entries()) {
    const next = grants[index + 1];
    if (!next || next.fence === held.fence || (letGo.get(held.fence) ?? Infinity) < next.answeredAt) continue;
    const leasedFrom = Math.max(held.firstSentAt, renewals.get(held.fence) ?? 0);
    const leftUs = leasedFrom + leaseUs - CLOCK_SLACK_MS * 1000 - next.answeredAt;
    if (leftUs <= 0) continue;
    yield `session ${sessionId}: there was ${show.grant(next)} while the lease lived of ${show.grant(held)}, which was confirmed last at ${leasedFrom}`;
  }
}
