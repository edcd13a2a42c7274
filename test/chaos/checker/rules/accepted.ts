import { isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { type Run, type TurnRun } from '../run.js';

/** Accepted turns are in the ledger once, as the submit returned them, and every turn in the ledger was submitted (TRN-05, TRN-15). */
export function* accepted(run: Run): Generator<string> {
  yield* eachOnce(run);
  for (const turn of run.turns.values()) {
    if (turn.stored) yield* wasSubmitted(turn);
    else yield* wasNotSeen(turn);
  }
  yield* told(run);
}

function* eachOnce(run: Run): Generator<string> {
  const turns = run.contents.sessions.flatMap((session) =>
    session.turns.map((turn) => ({ ...turn, in: session.sessionId })),
  );
  const ids = new Map<string, string>();
  const keys = new Map<string, string>();
  for (const turn of turns) {
    const place = `session ${turn.in}, position ${turn.position}`;
    if (turn.sessionId !== turn.in) yield `${place}: turn ${turn.id} says that it belongs to session ${turn.sessionId}`;
    const other = ids.get(turn.id);
    if (other !== undefined) yield `turn ${turn.id} is in the ledger twice: ${other}, and ${place}`;
    ids.set(turn.id, place);
    if (turn.idempotencyKey === undefined) continue;
    const same = keys.get(turn.idempotencyKey);
    if (same !== undefined && other === undefined) {
      yield `key ${turn.idempotencyKey} has two turns: ${same}, and ${turn.id} in ${place}`;
    }
    keys.set(turn.idempotencyKey, `${turn.id} in ${place}`);
  }
}

function* wasSubmitted(turn: TurnRun): Generator<string> {
  const { stored, submits, sessionId } = turn;
  if (!stored) return;
  const { idempotencyKey: key, request } = stored;
  const here = submits.filter(({ args }) => args.sessionId === sessionId);
  if (!here.some(mayBeDone)) {
    const why =
      here.length > 0
        ? `every submit failed, the last one as ${show.call(here[here.length - 1])}`
        : 'no client sent it';
    yield `${show.turn(turn)}: its key ${key ?? 'is missing'} was never accepted: ${why}`;
  }
  if (request.input.text !== key) yield `${show.turn(turn)}: its text is ${request.input.text}, its key ${key}`;
}

/** Every turn that a client saw must exist. */
function* wasNotSeen({ turnId, sessionId, grants, fenced, clients, readers }: TurnRun): Generator<string> {
  const [call] = [...fenced, ...clients].filter(isDone);
  const [grant] = grants;
  const place = `session ${sessionId || 'unknown'}: turn ${turnId} is not in the ledger, but `;
  if (grant) yield `${place}there was ${show.grant(grant)}`;
  else if (call) yield `${place}there was ${show.call(call)}`;
  else if (readers.size > 0) yield `${place}reader ${[...readers.keys()][0]} received events of it`;
}

function* told(run: Run): Generator<string> {
  for (const [key, submits] of run.submits) {
    for (const submit of submits.filter(isDone)) {
      const { turnId, position } = submit.value;
      const turn = run.turns.get(turnId);
      const stored = turn?.stored;
      const where = `session ${submit.args.sessionId}, key ${key}: ${show.call(submit)} returned turn ${turnId} at position ${position}, `;
      if (!stored) {
        if (turn && [...wasNotSeen(turn)].length === 0) yield `${where}which is not in the ledger`;
      } else if (turn.sessionId !== submit.args.sessionId || stored.position !== position) {
        yield `${where}which is in session ${turn.sessionId} at position ${stored.position}`;
      } else if (stored.idempotencyKey !== key) {
        yield `${where}whose key is ${stored.idempotencyKey}`;
      }
    }
  }
}
