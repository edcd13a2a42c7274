import { isTerminal, type TurnStatus } from 'nestjs-agent-sessions';
import { type DoneCall, isDone } from '../calls.js';
import { show } from '../describe.js';
import { type Run, type TurnRun } from '../run.js';

/** Every accepted turn ends once, and all clients receive the same result (TRN-01, TRN-15). */
export function* settledOnce(run: Run): Generator<string> {
  for (const turn of run.turns.values()) {
    const { stored } = turn;
    if (!stored) continue;
    if (!isTerminal(stored.status)) {
      yield `${show.turn(turn)} has not ended`;
    } else if (turn.mayHaveEndedAt === null) {
      yield `${show.turn(turn)}: nothing in the history can have ended it as ${stored.status} with ${answer(stored.reply?.text)}`;
    }
    yield* oneSettle(turn);
    yield* noFurtherClaim(turn);
    yield* toldTheEnd(turn);
  }
}

function* oneSettle(turn: TurnRun): Generator<string> {
  const { stored, fenced } = turn;
  const settles = fenced.filter((call) => call.op === 'settle').filter(isDone) as DoneCall<'settle'>[];
  const [first] = settles;
  const second = settles.find(({ args }) => args.fence !== first.args.fence);
  if (second) yield `${show.turn(turn)} settled twice: ${show.call(first)}, and ${show.call(second)}`;
  const other = settles.find(
    ({ args }) => args.status !== stored?.status || args.text !== (stored.reply?.text ?? null),
  );
  if (other && !second) {
    const { status, text } = other.args;
    yield `${show.turn(turn)} has ${answer(stored?.reply?.text)}, but ${show.call(other)} was ${status} with ${answer(text)}`;
  }
}

/** A turn that ended, or was asked to stop, gets no further attempt. */
function* noFurtherClaim(turn: TurnRun): Generator<string> {
  const ends = [...turn.fenced, ...turn.clients]
    .filter(isDone)
    .filter((call) => call.op === 'settle' || call.op === 'cancel' || endAfter(call) !== null);
  for (const grant of turn.grants) {
    const end = ends.find(({ answeredAt }) => answeredAt < grant.firstSentAt);
    if (end) yield `${show.turn(turn)}: after ${show.call(end)} there was ${show.grant(grant)}`;
  }
}

function* toldTheEnd(turn: TurnRun): Generator<string> {
  const { stored, mayHaveEndedAt } = turn;
  for (const call of [...turn.fenced, ...turn.clients].filter(isDone)) {
    const status = endAfter(call);
    if (status === null) continue;
    if (status !== stored?.status) {
      yield `${show.turn(turn)}: ${show.call(call)} returned that it is ${status}`;
    } else if (call.op === 'result' && call.value.text !== (stored.reply?.text ?? null)) {
      yield `${show.turn(turn)} has ${answer(stored.reply?.text)}, but ${show.call(call)} returned ${answer(call.value.text)}`;
    } else if (mayHaveEndedAt !== null && call.answeredAt < mayHaveEndedAt) {
      yield `${show.turn(turn)}: ${show.call(call)} returned that it is over before it can have been, at ${mayHaveEndedAt}`;
    }
  }
}

/** Returns the final status in the call's answer; null if it has none. */
function endAfter(call: DoneCall): TurnStatus | null {
  switch (call.op) {
    case 'result':
    case 'cancel':
    case 'retry':
    case 'release':
    case 'wait':
      return isTerminal(call.value.status) ? call.value.status : null;
    default:
      return null;
  }
}

function answer(text: string | null | undefined): string {
  return text === null || text === undefined ? 'no answer' : `the answer ${JSON.stringify(text)}`;
}
