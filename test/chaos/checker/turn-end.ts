import { isTerminal } from 'nestjs-agent-sessions';
import { type Call, mayBeDone } from './calls.js';
import { type Run, type SessionRun, type TurnRun } from './run.js';

type Ending = Omit<TurnRun, 'mayHaveEndedAt'>;
type Lane = Pick<SessionRun, 'submits' | 'claims'>;

/** The effect of a new message on the turn that holds the lane, and on queued ones. */
const STOPPING: readonly string[] = ['interrupt', 'rollback', 'replace'];
const SUPERSEDING: readonly string[] = ['latest', 'replace'];

/**
 * Returns the time until which the turn was certainly open: no call that can have caused its final status had been sent.
 * Infinity while it is open; null if no call in the history can have caused its status.
 */
export function mayHaveEndedAt(turn: Ending, lane: Lane, submits: Run['submits'], turns: Run['turns']): number | null {
  const { stored } = turn;
  if (!stored || !isTerminal(stored.status)) return Infinity;
  const moments = [...bySettle(turn)];
  if (stored.status === 'failed') moments.push(...byLapse(turn, lane));
  if (stored.status === 'cancelled') moments.push(...byStop(turn, lane));
  // A turn that has begun holds its lane and cannot be superseded.
  if (stored.status === 'superseded' && stored.startedAt === undefined) {
    const key = turns.get(stored.supersededBy ?? '')?.stored?.idempotencyKey ?? '';
    const survivor = (submits.get(key) ?? []).filter(
      (submit) => mayBeDone(submit) && SUPERSEDING.includes(submit.args.whenBusy),
    );
    moments.push(...survivor.map(({ sentAt }) => sentAt));
  }
  return moments.length === 0 ? null : Math.min(...moments);
}

/** Calls of its worker. */
function bySettle({ stored, fenced }: Ending): number[] {
  const settles = fenced.filter(
    (call) =>
      call.op === 'settle' &&
      mayBeDone(call) &&
      call.args.status === stored?.status &&
      call.args.text === (stored.reply?.text ?? null),
  );
  return settles.map(({ firstSentAt }) => firstSentAt);
}

/** Claims that found the last allowed loss. */
function byLapse({ grants }: Ending, { claims }: Lane): number[] {
  const last = grants.at(-1);
  const from = last?.firstSentAt ?? -Infinity;
  const later = claims.filter((call) => call !== last?.by && mayBeDone(call) && call.answeredAt > from);
  return later.map(({ sentAt }) => Math.max(sentAt, from));
}

/** Calls that asked it to stop. */
function byStop({ clients, submits, stored }: Ending, lane: Lane): number[] {
  const from = submits.length === 0 ? -Infinity : Math.min(...submits.map(({ sentAt }) => sentAt));
  const cancels = clients.filter((call) => call.op === 'cancel' && mayBeDone(call));
  const stops = lane.submits.filter((submit) => asksToStop(submit, stored?.idempotencyKey) && submit.answeredAt > from);
  return [...cancels, ...stops].map(({ sentAt }) => Math.max(sentAt, from));
}

function asksToStop(submit: Call<'submit'>, ownKey: string | undefined): boolean {
  return mayBeDone(submit) && submit.args.key !== ownKey && STOPPING.includes(submit.args.whenBusy);
}
