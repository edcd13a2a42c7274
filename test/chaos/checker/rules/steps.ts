import { isDeepStrictEqual } from 'node:util';
import { type DoneCall, isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { groupBy } from '../group-by.js';
import { type Run, type TurnRun } from '../run.js';

/**
 * A stored step is permanent: later claims receive it, and do not execute it again (BOT-30). A tool call is
 * a step (ORC-28).
 */
export function* steps(run: Run): Generator<string> {
  for (const turn of run.turns.values()) {
    const saves = turn.fenced.filter((call) => call.op === 'saveStep').filter(isDone);
    const saved = groupBy(saves, ({ args }) => args.step);
    for (const same of saved.values()) {
      yield* oneValue(turn, same);
      yield* comesAlong(turn, same);
    }
    yield* notRepeated(turn, saved);
    yield* fromSomewhere(turn);
  }
}

function* oneValue(turn: TurnRun, [first, ...rest]: readonly DoneCall<'saveStep'>[]): Generator<string> {
  const other = rest.find(({ value }) => !isDeepStrictEqual(value.value, first.value.value));
  if (!other) return;
  yield `${show.turn(turn)}: step ${first.args.step} is ${JSON.stringify(first.value.value)} after ${show.call(first)}, and ${JSON.stringify(other.value.value)} after ${show.call(other)}`;
}

/** Every later claim contains the steps of earlier fences. */
function* comesAlong(turn: TurnRun, saves: readonly DoneCall<'saveStep'>[]): Generator<string> {
  const first = saves.reduce((a, b) => (b.args.fence < a.args.fence ? b : a));
  const { step, fence } = first.args;
  const without = turn.grants.find((grant) => grant.fence > fence && !grant.steps.includes(step));
  if (without)
    yield `${show.turn(turn)}: step ${step} is missing from ${show.grant(without)}, after ${show.call(first)}`;
}

/**
 * Attempts with a later fence received the step, and the attempt that stored it has it. An earlier fence
 * belongs to a handler that has lost its turn and does not know about other attempts.
 */
function* notRepeated(turn: TurnRun, saved: ReadonlyMap<string, readonly DoneCall<'saveStep'>[]>): Generator<string> {
  for (const { step, attempt, at, process } of turn.effects) {
    const place = `${show.turn(turn)}: step ${step} was done at ${at} by ${attempt ? show.attempt(attempt) : process}`;
    if (!attempt) {
      yield `${place}, by a handler that never began`;
      continue;
    }
    const fence = attempt.grant?.fence;
    if (fence === undefined) continue;
    const before = (saved.get(step) ?? []).find(
      (save) => save.args.fence < fence || (save.args.fence === fence && save.answeredAt < at),
    );
    if (before) yield `${place}, after ${show.call(before)}`;
  }
}

/** An attempt stored every stored step, or it is the result of a wait. */
function* fromSomewhere(turn: TurnRun): Generator<string> {
  const known = new Set<string>();
  for (const call of turn.fenced) {
    if (!mayBeDone(call)) continue;
    if (call.op === 'saveStep') known.add(call.args.step);
    if (call.op === 'wait') known.add(call.args.signal);
  }
  for (const grant of turn.grants) {
    const strange = grant.steps.find((step) => !known.has(step));
    if (strange !== undefined) yield `${show.turn(turn)}: no attempt stored step ${strange} of ${show.grant(grant)}`;
  }
}
