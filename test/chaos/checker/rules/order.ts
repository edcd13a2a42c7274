import { isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { contradictions } from '../in-order.js';
import { type Grant, type Run, type SessionRun, type TurnRun } from '../run.js';

/** The turns of a session are ordered by acceptance, and run in this order (TRN-02). */
export function* order(run: Run): Generator<string> {
  for (const session of run.sessions) {
    yield* positions(session);
    yield* acceptance(session);
    yield* claims(session);
  }
}

function* positions({ sessionId, contents }: SessionRun): Generator<string> {
  for (const [index, { id, position }] of (contents?.turns ?? []).entries()) {
    if (position === index + 1) continue;
    yield `session ${sessionId}: turn ${id} has position ${position}; ${index + 1} was to be the next one`;
    return;
  }
}

function* acceptance(session: SessionRun): Generator<string> {
  const stored = session.turns.filter((turn) => turn.stored && turn.submits.some(mayBeDone));
  for (const [earlier, later] of contradictions(stored, acceptedFrom, acceptedBy)) {
    yield `${show.turn(later)} was accepted by ${acceptedBy(later)}, before ${show.turn(earlier)} was sent, at ${acceptedFrom(earlier)}`;
  }
}

function acceptedFrom({ submits }: TurnRun): number {
  return Math.min(...submits.filter(mayBeDone).map(({ sentAt }) => sentAt));
}

function acceptedBy({ submits }: TurnRun): number {
  return Math.min(...submits.filter(isDone).map(({ answeredAt }) => answeredAt));
}

function* claims({ sessionId, grants, turns }: SessionRun): Generator<string> {
  for (const turn of turns) {
    const wrong = turn.grants.find(({ position }) => turn.stored && position !== turn.stored.position);
    if (wrong) yield `${show.turn(turn)}: there was ${show.grant(wrong)}`;
  }
  let furthest: Grant | null = null;
  for (const grant of grants) {
    if (furthest && grant.position < furthest.position) {
      yield `session ${sessionId}: ${show.grant(furthest)} was granted before ${show.grant(grant)}`;
    } else {
      furthest = grant;
    }
  }
  yield* overtaking(turns);
}

/** Detects a turn that was claimed while an earlier one was certainly open. */
function* overtaking(turns: readonly TurnRun[]): Generator<string> {
  let open: TurnRun | null = null;
  let openUntil = -Infinity;
  for (const turn of turns) {
    if (!turn.stored) continue;
    const early = turn.grants.find(({ answeredAt }) => answeredAt < openUntil);
    if (early && open) {
      yield `${show.turn(open)} cannot have ended before ${openUntil}, but by then there was ${show.grant(early)}`;
    }
    const until = turn.mayHaveEndedAt ?? -Infinity;
    if (until <= openUntil) continue;
    open = turn;
    openUntil = until;
  }
}
