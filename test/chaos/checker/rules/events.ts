import { type DoneCall, isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { type EventNote, type Run, type TurnRun } from '../run.js';

/** Events of the package: the end and a wait, which are never stored, and the mark of a new attempt. */
const SETTLED = 'settled';
const WAITING = 'waiting';
const ATTEMPT = 'attempt';

/** A turn's events have no gaps, losses or duplicates, and all readers receive the same ones (TRN-30, TRN-32). */
export function* events(run: Run): Generator<string> {
  for (const turn of run.turns.values()) {
    if (!turn.stored) continue;
    yield* numbered(turn);
    yield* appended(turn);
    yield* notMore(turn);
    for (const [reader, given] of turn.readers) yield* read(turn, reader, given);
  }
}

function* numbered(turn: TurnRun): Generator<string> {
  const gap = turn.events.findIndex(({ offset }, index) => offset !== index + 1);
  if (gap !== -1)
    yield `${show.turn(turn)}: stored event ${turn.events[gap].offset} is stored where ${gap + 1} was expected`;
}

/** Every confirmed batch is in the log, at its own position, in the order of fences and numbers. */
function* appended(turn: TurnRun): Generator<string> {
  const appends = turn.fenced.filter((call) => call.op === 'append').filter(isDone) as DoneCall<'append'>[];
  const inOrder = appends.sort((a, b) => a.args.fence - b.args.fence || a.args.number - b.args.number);
  const stored = turn.events.at(-1)?.offset ?? 0;
  for (const [index, call] of inOrder.entries()) {
    const { fence, number, count } = call.args;
    const { last } = call.value;
    const before = index === 0 ? undefined : inOrder[index - 1];
    const isRepeat = before?.args.fence === fence && before.args.number === number;
    if (last > stored) {
      yield `${show.turn(turn)}: events up to ${last} were stored by ${show.call(call)}, but there are ${stored}`;
    } else if (isRepeat ? last !== before.value.last : last - count < (before?.value.last ?? 0)) {
      yield `${show.turn(turn)}: ${count} events up to ${last} by ${show.call(call)} ${before ? `overlap those up to ${before.value.last} by ${show.call(before)}` : 'are more than there are'}`;
    }
  }
}

/** Every event in the log was appended once. */
function* notMore(turn: TurnRun): Generator<string> {
  const batches = new Map<string, number>();
  const fences = new Set<number>();
  for (const call of turn.fenced) {
    if (call.op !== 'append' || !mayBeDone(call)) continue;
    batches.set(`${call.args.fence} ${call.args.number}`, call.args.count);
    fences.add(call.args.fence);
  }
  const sent = [...batches.values()].reduce((sum, count) => sum + count, 0);
  const marks = turn.events.filter(({ type }) => type === ATTEMPT).length;
  const emitted = turn.events.length - marks;
  if (emitted > sent) yield `${show.turn(turn)}: ${emitted} events are stored, but ${sent} were sent`;
  if (marks > Math.max(0, fences.size - 1)) {
    yield `${show.turn(turn)}: ${marks} times another attempt is marked, but ${fences.size} claims have sent events`;
  }
}

function* read(turn: TurnRun, reader: string, given: readonly EventNote[]): Generator<string> {
  const place = `${show.turn(turn)}: reader ${reader}`;
  let before: number | undefined;
  let hasEnded = false;
  for (const { offset, name, at, process } of given) {
    const event = `event ${offset} (${name}) at ${at} in ${process}`;
    // A wait is derived from the turn, with the offset of the last stored event. No reader resumes.
    const expected = (before ?? 0) + (name === WAITING ? 0 : 1);
    if (before === undefined && offset !== expected) yield `${place} received event ${offset} first`;
    if (hasEnded) {
      yield `${place} received ${event}, after the end`;
    } else if (before !== undefined && offset !== expected) {
      yield `${place} received ${event}, after event ${before}`;
    } else if (name === SETTLED) {
      if (offset !== turn.events.length + 1) yield `${place} received ${event}, but ${turn.events.length} are stored`;
      else if (turn.mayHaveEndedAt !== null && at < turn.mayHaveEndedAt) {
        yield `${place} received ${event}, before the turn can have ended, at ${turn.mayHaveEndedAt}`;
      }
    } else if (name !== WAITING && turn.events[offset - 1]?.type !== name) {
      yield `${place} received ${event}, but stored is ${turn.events[offset - 1]?.type ?? 'nothing'}`;
    }
    hasEnded ||= name === SETTLED;
    before = offset;
  }
}
