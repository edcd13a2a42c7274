import { type CancelMode, type ConversationMessage, type Turn, type WhenBusy } from 'nestjs-agent-sessions';
import { type SessionContents } from '../../history/history.js';
import { isDone, mayBeDone } from '../calls.js';
import { groupBy } from '../group-by.js';
import { type Run, type SessionRun } from '../run.js';
import { isSuccessful } from './checkpoints.js';

/** The conversation contains the messages of its turns once, in the order of the lane (STA-03, TRN-06). */
export function* messages(run: Run): Generator<string> {
  const attempts = new Map(
    [...run.turns.values()].flatMap((turn) => turn.attempts.map((one) => [one.attempt, one.turnId])),
  );
  for (const session of run.sessions) {
    if (!session.contents) continue;
    yield* inOrder(session.contents);
    const byTurn = groupBy(session.contents.messages, ({ turnId }) => turnId);
    for (const turn of session.contents.turns) {
      yield* ofTurn(turn, byTurn.get(turn.id) ?? [], session, attempts);
    }
  }
}

function* inOrder({ sessionId, messages, turns }: SessionContents): Generator<string> {
  const positions = new Map(turns.map(({ id, position }) => [id, position]));
  const ids = new Set<string>();
  let last = 0;
  for (const [index, { id, position, turnId }] of messages.entries()) {
    const place = `session ${sessionId}: message ${id} at ${position}, of turn ${turnId}`;
    const ofTurn = positions.get(turnId ?? '');
    if (position !== index + 1) yield `${place}, is stored where ${index + 1} was expected`;
    if (ids.has(id)) yield `${place}, is there twice`;
    ids.add(id);
    if (ofTurn === undefined) {
      yield `${place}, belongs to no turn of the session`;
    } else if (ofTurn < last) {
      yield `${place} (position ${ofTurn}), comes after those of position ${last}`;
    } else {
      last = ofTurn;
    }
  }
}

function* ofTurn(
  turn: Turn,
  own: readonly ConversationMessage[],
  session: SessionRun,
  attempts: ReadonlyMap<string, string>,
): Generator<string> {
  const said = own.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : 'no text'}`);
  const asked = `user: ${turn.request.input.text}`;
  const place = `session ${session.sessionId}, turn ${turn.id} (position ${turn.position}, ${turn.status})`;
  if (isSuccessful(turn)) {
    const answered = `assistant: ${turn.reply?.text}`;
    if (said.length !== 2 || said[0] !== asked || said[1] !== answered) {
      yield `${place} left ${list(said)} instead of ${list([asked, answered])}`;
    }
    yield* namesItsAttempt(turn, place, attempts);
  } else if (turn.status === 'cancelled' && said.length === 1 && said[0] === asked) {
    const modes = stopsOf(turn, session).map(({ mode }) => mode);
    if (!modes.includes('interrupt')) yield `${place} left its message, but no call interrupted it`;
  } else if (said.length > 0) {
    yield `${place} left ${list(said)}`;
  } else if (turn.status === 'cancelled' && wasInterrupted(turn, session)) {
    yield `${place} was interrupted while it ran, but left no message`;
  }
}

/** A handler of this turn returned the reply. */
function* namesItsAttempt(
  { id, idempotencyKey, reply }: Turn,
  place: string,
  attempts: ReadonlyMap<string, string>,
): Generator<string> {
  const text = reply?.text ?? '';
  const attempt = text.slice(text.lastIndexOf(' ') + 1);
  if (text !== `${idempotencyKey} ${attempt}` || attempts.get(attempt) !== id) {
    yield `${place} has the answer ${JSON.stringify(text)}, which no handler of it can have given`;
  }
}

const MODES: Readonly<Partial<Record<WhenBusy, CancelMode>>> = {
  interrupt: 'interrupt',
  rollback: 'rollback',
  replace: 'interrupt',
};

/** Returns the calls that may have asked the turn to stop, and whether its message is then stored. */
function stopsOf({ id, idempotencyKey }: Turn, { submits, turns }: SessionRun): { mode: CancelMode; sentAt: number }[] {
  const run = turns.find(({ turnId }) => turnId === id);
  const acceptedFrom = Math.min(...(run?.submits ?? []).map(({ sentAt }) => sentAt));
  const cancels = (run?.clients ?? []).flatMap((call) =>
    call.op === 'cancel' && mayBeDone(call) ? [{ mode: call.args.mode, sentAt: call.sentAt }] : [],
  );
  const messages = submits.flatMap((call) => {
    const mode = MODES[call.args.whenBusy];
    const isLater = call.args.key !== idempotencyKey && call.answeredAt > acceptedFrom;
    return mode && mayBeDone(call) && isLater ? [{ mode, sentAt: call.sentAt }] : [];
  });
  return [...cancels, ...messages];
}

/** A turn that its worker settles as cancelled was running when it was asked to stop. */
function wasInterrupted(turn: Turn, session: SessionRun): boolean {
  const settle = session.fenced.find(
    (call) => call.op === 'settle' && isDone(call) && call.args.turnId === turn.id && call.args.status === 'cancelled',
  );
  if (!settle) return false;
  const before = stopsOf(turn, session).filter(({ sentAt }) => sentAt < settle.answeredAt);
  return before.length > 0 && before.every(({ mode }) => mode === 'interrupt');
}

function list(said: readonly string[]): string {
  return said.length === 0 ? 'no message' : said.map((one) => JSON.stringify(one)).join(', ');
}
