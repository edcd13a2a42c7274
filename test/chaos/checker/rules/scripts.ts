import { type Script } from '../../actor/script.js';
import { isDeepStrictEqual } from 'node:util';
import { stepOfCall } from '../../history/history.js';
import { answerUses } from '../answer-uses.js';
import { type DoneCall, isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { type Run, type TurnRun } from '../run.js';
import { scriptOf } from '../script-of.js';
import { isSuccessful } from './checkpoints.js';
import { isWorkerLost } from './losses.js';

/** A turn ends according to its script, for any number of attempts (TRN-11, TRN-30, BOT-30). */
export function* scripts(run: Run): Generator<string> {
  for (const turn of run.turns.values()) {
    const { stored } = turn;
    const script = scriptOf(turn);
    if (!stored || !script) continue;
    // The rule `losses` checks turns that failed because of losses.
    if (stored.status === 'failed' && !script.fails && !isWorkerLost(stored))
      yield `${show.turn(turn)} was not to fail`;
    if (isSuccessful(stored)) yield* success(turn, script, stored.failures + stored.lost);
  }
}

function* success(turn: TurnRun, script: Script, ended: number): Generator<string> {
  const { fails, failures, steps, emits, tools, crashAfterMs } = script;
  if (fails) yield `${show.turn(turn)} was to fail`;
  if (typeof crashAfterMs === 'number') yield `${show.turn(turn)} was to end each process that ran it`;
  if (ended < failures) yield `${show.turn(turn)}: ${ended} attempts failed or were lost; ${failures} were to fail`;
  const saves = turn.fenced.filter((call) => call.op === 'saveStep').filter(mayBeDone);
  const saved = new Set(saves.map(({ args }) => args.step).filter((step) => !step.startsWith(stepOfCall('')))).size;
  if (saved < steps) yield `${show.turn(turn)} ended with ${saved} stored steps; ${steps} were to be`;
  const used = answerUses(turn)?.map(({ tool, tokens, failed }) => ({ tool, tokens, fails: failed }));
  if (used && !isDeepStrictEqual(used, tools)) {
    yield `${show.turn(turn)} used ${JSON.stringify(used)}; ${JSON.stringify(tools)} were to be`;
  }
  yield* emitted(turn, steps * emits);
}

/** The events of the successful attempt are stored, unless the store was unavailable for too long. */
function* emitted(turn: TurnRun, expected: number): Generator<string> {
  const settle = turn.fenced.find((call) => call.op === 'settle' && isDone(call));
  if (!settle) return;
  const { fence } = settle.args;
  const appends = turn.fenced.filter((call) => call.op === 'append').filter(({ args }) => args.fence === fence);
  const stored = new Map(
    (appends.filter(isDone) as DoneCall<'append'>[]).map(({ args: { number, count } }) => [number, count]),
  );
  if (appends.some(({ args }) => !stored.has(args.number))) return;
  const count = [...stored.values()].reduce((sum, one) => sum + one, 0);
  if (count !== expected)
    yield `${show.turn(turn)}: ${count} events were stored with fence ${fence}; ${expected} were to be`;
}
