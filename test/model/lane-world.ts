import { type CancelMode, type WhenBusy } from 'nestjs-agent-sessions';
import { type Performed, type System } from './explore.js';
import {
  type Answer,
  type Attempt,
  copyOf,
  emptyLane,
  type Given,
  holdsLane,
  isOpen,
  isRefusal,
  type LaneAction,
  type LaneState,
  type ModelTurn,
  type Payload,
  POLICIES,
  SUSPECT_FROM_LOST,
} from './lane.js';
import { TransitionTable } from './transition-table.js';

/** The bounds of a world. Omitted actions do not happen in it. */
export interface Bounds {
  /** Number of turns that clients submit. */
  readonly turns: number;
  /** Number of failures that end a turn. */
  readonly maxAttempts: number;
  /** Number of losses that end a turn. */
  readonly maxLost: number;
  /** Number of earlier attempts that may still send calls, besides the last one. */
  readonly zombies: number;
  readonly whenBusy: readonly WhenBusy[];
  readonly cancel?: readonly CancelMode[];
  /** Turns wait for a signal, and clients send these payloads. */
  readonly signals?: readonly Payload[];
  readonly steps?: true;
  /** True if the session may expire. */
  readonly expire?: true;
}

/** A lane with its clients and workers. */
export class LaneWorld implements System<LaneState, LaneAction, Answer> {
  readonly initial: LaneState;

  constructor(
    private readonly bounds: Bounds,
    private readonly table = new TransitionTable(),
  ) {
    this.initial = emptyLane(bounds.maxLost);
  }

  actions(lane: LaneState): LaneAction[] {
    return [
      { type: 'time' },
      ...this.suspects.map((suspects): LaneAction => ({ type: 'claim', claim: lane.fence + 1, suspects })),
      ...lane.attempts.flatMap((attempt) => this.callsOf(lane, attempt)),
      ...this.callsOfClients(lane),
    ];
  }

  /** Whether new claims accept suspects. With progress, turns are lost more often than `maxLost`, and all claims do. */
  private get suspects(): readonly boolean[] {
    const { maxLost, steps, signals } = this.bounds;
    if (maxLost > SUSPECT_FROM_LOST) return [false, true];
    return [steps === true || signals !== undefined];
  }

  private callsOf(lane: LaneState, attempt: Attempt): LaneAction[] {
    const { bounds } = this;
    const { turn, fence, index } = attempt;
    const hold = { turn, fence };
    const { asked, status } = lane.turns[turn];
    const calls: LaneAction[] = [
      { type: 'claim', claim: attempt.claim },
      { type: 'renew', hold },
      { type: 'release', hold },
    ];
    for (const next of [null, nextClaimOf(attempt)]) {
      calls.push({ type: 'settle', hold, status: 'awaiting-input', index, message: true, next });
      calls.push({ type: 'settle', hold, status: 'failed', index: null, message: false, next });
      if (asked === null && status !== 'cancelled') continue;
      calls.push({ type: 'settle', hold, status: 'cancelled', index: null, message: asked === 'interrupt', next });
    }
    if (attempt.failures + 1 < bounds.maxAttempts) calls.push({ type: 'retry', hold });
    // A stored step is not executed again.
    if (bounds.steps && !attempt.step) calls.push({ type: 'saveStep', hold });
    if (bounds.signals && attempt.answer === null) calls.push({ type: 'wait', hold });
    return calls;
  }

  private callsOfClients(lane: LaneState): LaneAction[] {
    const { turns, whenBusy, cancel = [], signals = [], expire } = this.bounds;
    const numbers = [...lane.turns.keys()];
    return [
      ...numbers.map((turn): LaneAction => ({ type: 'accept', turn, whenBusy: whenBusy[0] })),
      ...numbers.flatMap((turn) => cancel.map((mode): LaneAction => ({ type: 'cancel', turn, mode }))),
      ...numbers.flatMap((turn) => signals.map((payload): LaneAction => ({ type: 'signal', turn, payload }))),
      ...(lane.turns.length < turns
        ? whenBusy.map((whenBusy): LaneAction => ({ type: 'accept', turn: lane.turns.length, whenBusy }))
        : []),
      ...(expire ? [{ type: 'expire' } as const] : []),
    ];
  }

  perform(before: LaneState, action: LaneAction): Performed<LaneState, Answer> {
    const after = copyOf(before);
    const answer = this.table.apply(after, action);
    if (isRefusal(answer)) return { answer, after: before };
    this.remember(before, action, answer, after);
    forget(after);
    return { answer, after };
  }

  /** Records the answers that callers received, which the store does not know. */
  private remember(before: LaneState, action: LaneAction, answer: Answer, after: LaneState): void {
    const asked = askedBy(before, action, answer);
    if (asked) after.turns[asked.turn].asked ??= asked.mode;
    if (action.type === 'saveStep') after.turns[action.hold.turn].acknowledged = true;
    const [latest] = after.attempts;
    if ('hold' in action && action.hold.fence === latest.fence && endsHold(action, answer)) latest.over = true;
    const claimed = claimOf(action, answer);
    if (!claimed || isRepeated(before, claimed)) return;
    after.attempts.unshift({ ...claimed.given, claim: claimed.claim, over: false });
    after.attempts.length = Math.min(after.attempts.length, this.bounds.zombies + 1);
  }

  /** States are equal up to the values of fences, the names of claims, and what calls do not read any more. */
  key({ turns, fence, runner, attention, checkpoints, messages, expired, attempts }: LaneState): string {
    const since = (other: number): number => fence - other;
    const names = [...attempts.map(({ claim }) => claim), ...attempts.map((attempt) => nextClaimOf(attempt))];
    return JSON.stringify([
      turns.map((turn) => [
        turn.status,
        turn.settledBy && since(turn.settledBy),
        ...(isOpen(turn) ? openKey(turn) : [turn.signal !== null, turn.failures > 0, turn.lost > 0]),
      ]),
      runner && [runner.turn, names.indexOf(runner.claim), runner.lapsed],
      attention,
      checkpoints,
      messages,
      expired,
      attempts.map((attempt) => [
        attempt.turn,
        since(attempt.fence),
        names.indexOf(attempt.claim),
        attempt.failures,
        attempt.index,
        attempt.step,
        attempt.answer,
        attempt.over,
      ]),
    ]);
  }

  tell(action: LaneAction, answer: Answer): string {
    const { type, ...rest } = action;
    return `${type} ${told(rest)} -> ${told(answer)}`;
  }
}

/** What calls depend on only while a turn is open. Of an ended one, the key keeps whether it failed or was lost: a store might count these per lane. */
function openKey(turn: ModelTurn): unknown[] {
  const { begun, due, failures, lost, lostSinceStep, mark, signal, answer, step, asked, acknowledged } = turn;
  return [begun, due, failures, lost, lostSinceStep, mark, signal, answer, step, asked, acknowledged];
}

/** Returns the name of the claim in its settle. */
function nextClaimOf({ fence }: Attempt): number {
  return fence + 0.5;
}

/** Returns the turn that is asked to stop while it holds the lane, and the mode. */
export function askedBy(
  lane: LaneState,
  action: LaneAction,
  answer: Answer,
): { turn: number; mode: CancelMode } | undefined {
  const holder = lane.turns.findIndex(holdsLane);
  if (action.type === 'cancel' && action.turn === holder) return action;
  if (action.type !== 'accept' || action.turn < lane.turns.length || holder < 0 || isRefusal(answer)) return undefined;
  const mode = POLICIES[action.whenBusy].stops;
  return mode && { turn: holder, mode };
}

/** Returns the claimed turn and the name of the claim. */
export function claimOf(action: LaneAction, answer: Answer): { claim: number; given: Given } | null {
  if (isRefusal(answer) || answer === null) return null;
  if (action.type === 'claim') return { claim: action.claim, given: answer as Given };
  if (action.type !== 'settle' || action.next === null) return null;
  const given = (answer as { readonly next: Given | null }).next;
  return given && { claim: action.next, given };
}

/** Returns the attempt of a repeated claim, which got the same answer. */
export function isRepeated({ runner, fence }: LaneState, { claim, given }: { claim: number; given: Given }): boolean {
  return runner?.claim === claim && given.fence === fence;
}

function endsHold({ type }: LaneAction, answer: Answer): boolean {
  if (type === 'wait') return (answer as { readonly received: Payload | null }).received === null;
  return type === 'settle' || type === 'retry' || type === 'release';
}

/** Drops irrelevant attempts, so that more states are equal. */
function forget(lane: LaneState): void {
  const [latest, ...zombies] = lane.attempts;
  // They may send calls with the data of their claims.
  for (const attempt of zombies)
    Object.assign(attempt, { failures: 0, lost: 0, step: false, answer: null, over: true });
  if (latest?.over) Object.assign(latest, { failures: 0, lost: 0, step: false, answer: null });
  for (const turn of lane.turns) {
    if (isOpen(turn)) continue;
    Object.assign(turn, { begun: false, due: false, answer: null, step: false, asked: null, acknowledged: false });
    if (!lane.attempts.some(({ fence }) => fence === turn.settledBy)) turn.settledBy = null;
  }
}

function told(value: unknown): string {
  return JSON.stringify(value)?.replaceAll('"', '') ?? '';
}
