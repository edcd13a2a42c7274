import { type Properties, type Step } from './explore.js';
import {
  type Answer,
  type Attempt,
  type Given,
  isOpen,
  isRefusal,
  type LaneAction,
  type LaneState,
  POLICIES,
  SUSPECT_FROM_LOST,
} from './lane.js';
import { askedBy, claimOf, isRepeated } from './lane-world.js';

type LaneStep = Step<LaneState, LaneAction, Answer>;

/** Rules for every step of every lane. They do not depend on the implementation of the table. */
const RULES = {
  'TRN-01 a settled turn never changes': ({ before, after }) =>
    before.turns.every(
      (was, n) =>
        isOpen(was) ||
        (['position', 'status', 'failures', 'lost', 'mark', 'signal'] as const).every(
          (key) => was[key] === after.turns[n][key],
        ),
    ),

  'TRN-01 a turn changes its status only as the table allows': ({ before, after }) =>
    before.turns.every(
      (was, n) => was.status === after.turns[n].status || LEADS_TO[was.status]?.includes(after.turns[n].status),
    ),

  'TRN-02 a turn is accepted once, behind all others, and keeps its position': ({ before, action, answer, after }) => {
    const isNew = action.type === 'accept' && action.turn === before.turns.length && !isRefusal(answer);
    return (
      after.turns.length === before.turns.length + (isNew ? 1 : 0) &&
      after.turns.every(({ position }, n) => position === n + 1)
    );
  },

  'TRN-02 no turn overtakes another': ({ after: { turns } }) => {
    const firstOpen = turns.findIndex(isOpen);
    return firstOpen < 0 || turns.slice(firstOpen + 1).every(({ status }) => !HAS_RUN.includes(status));
  },

  'TRN-03 at most one attempt of one turn runs': ({ after }) => {
    const running = [...after.turns.keys()].filter((n) => after.turns[n].status === 'running');
    if (!after.runner) return running.length === 0;
    const { turn, claim } = after.runner;
    return running.join() === String(turn) && after.attempts[0].turn === turn && after.attempts[0].claim === claim;
  },

  'TRN-03 every claim gets a higher fence': ({ before, action, answer }) => {
    const claimed = claimOf(action, answer);
    return !claimed || isRepeated(before, claimed) || claimed.given.fence > before.fence;
  },

  'TRN-03 no worker loses the lane during its lease': ({ before, action, after }) => {
    const { runner, attempts } = before;
    if (!runner || runner.lapsed) return true;
    if ('hold' in action && action.hold.fence === attempts[0].fence) return true;
    return after.runner?.turn === runner.turn && after.runner.claim === runner.claim;
  },

  'TRN-03 a replaced or ended attempt changes nothing': ({ before, action, answer, after }) => {
    const [latest] = before.attempts;
    if (!('hold' in action) || (action.hold.fence === latest.fence && !latest.over)) return true;
    if (isRefusal(answer)) return true;
    // A repeated settle may still claim the next turn, like a separate claim; the settled turn does not change.
    const { turn } = action.hold;
    const isRepeat = action.type === 'settle' && !isOpen(before.turns[turn]);
    return (
      isRepeat && kept(before, turn) === kept(after, turn) && before.checkpoints.length === after.checkpoints.length
    );
  },

  'TRN-05 a repeated call gets the same answer': ({ before, action, answer }) => {
    const { turns, runner, fence } = before;
    switch (action.type) {
      case 'accept': {
        if (action.turn === turns.length) return true;
        const { position, duplicate } = answer as { position?: number; duplicate?: boolean };
        return position === action.turn + 1 && duplicate === true;
      }
      case 'claim':
        if (!runner || runner.lapsed || runner.claim !== action.claim) return true;
        return (answer as Given | null)?.fence === fence;
      case 'settle': {
        const { status, settledBy } = turns[action.hold.turn];
        if (settledBy !== action.hold.fence) return true;
        return (answer as { status?: string }).status === status;
      }
      default:
        return true;
    }
  },

  'TRN-06 a message handles other turns as its policy says': ({ before, action, answer, after }) => {
    if (action.type !== 'accept') return true;
    const open = before.turns.some(isOpen);
    const isNew = action.turn === before.turns.length;
    if (isNew && action.whenBusy === 'reject' && open) return isRefusal(answer);
    const { stops, supersedes } = isNew && !isRefusal(answer) ? POLICIES[action.whenBusy] : {};
    return before.turns.every((was, n) => {
      const is = after.turns[n];
      if (isOpen(was) && !was.begun) return is.status === (supersedes ? 'superseded' : 'queued');
      if (!stops || !isOpen(was)) return is.status === was.status && is.mark === was.mark;
      return was.status === 'running' ? is.mark === (was.mark ?? stops) : is.status === 'cancelled';
    });
  },

  'TRN-06 a turn holds its lane from its first claim until it ends': ({ before, action, answer, after }) => {
    const claimed = claimOf(action, answer);
    return after.turns.every((is, n) => {
      const hasBegun = before.turns[n]?.begun || claimed?.given.turn === n;
      return !isOpen(is) || is.begun === Boolean(hasBegun);
    });
  },

  'TRN-06 a turn that was asked to stop gets no further attempt': ({ before, action, answer, after }) => {
    const given = claimOf(action, answer);
    return after.turns.every((is, n) => {
      const asked = before.turns[n]?.asked ?? null;
      if (asked === null || !isOpen(is)) return true;
      return is.status === 'running' && is.mark === asked && (given?.given.turn !== n || isRepeated(before, given));
    });
  },

  'TRN-06 the message of the user is stored once if the turn succeeds or is interrupted, otherwise never': (step) =>
    step.after.turns.every((is, n) => {
      const was = step.before.turns.at(n);
      if (was && !isOpen(was)) return kept(step.after, n) === kept(step.before, n);
      const interrupted = is.status === 'cancelled' && howAsked(step, n) === 'interrupt';
      return kept(step.after, n) === (is.status === 'awaiting-input' || interrupted ? 1 : 0);
    }),

  'TRN-08 exactly each failure is counted once': (step) =>
    step.before.turns.every((was, n) => step.after.turns[n].failures === was.failures + (isFailure(step, n) ? 1 : 0)),

  'FIX-06 exactly each lost attempt is counted once': (step) =>
    step.before.turns.every((was, n) => step.after.turns[n].lost === was.lost + (isLoss(step, n) ? 1 : 0)),

  'FIX-62 a turn is lost at most the maximum number of times without a new step': ({ after: { turns, maxLost } }) =>
    turns.every(({ lost, lostSinceStep, status }) => {
      const isOver = lostSinceStep >= maxLost || lost >= 10 * maxLost;
      return !isOver || status === 'failed';
    }),

  'FIX-62 exactly a new step resets the losses that fail a turn': (step) =>
    step.before.turns.every((was, n) => {
      const is = step.after.turns[n];
      if (!isOpen(is)) return true;
      const progressed = (is.step && !was.step) || (is.answer !== null && was.answer === null);
      return is.lostSinceStep === (progressed ? 0 : was.lostSinceStep + (isLoss(step, n) ? 1 : 0));
    }),

  'FIX-06 a turn that was lost twice runs only for a claim that accepts suspects': ({ before, action, answer }) => {
    const claimed = claimOf(action, answer);
    if (!claimed || isRepeated(before, claimed) || claimed.given.lost < SUSPECT_FROM_LOST) return true;
    return action.type === 'claim' && action.suspects === true;
  },

  'FIX-06 a first loss causes no delay': ({ before, action, answer, after }) => {
    const { runner, turns } = before;
    if (action.type !== 'claim' || !runner?.lapsed || turns[runner.turn].lost > 0) return true;
    const { status } = after.turns[runner.turn];
    return status === 'cancelled' || claimOf(action, answer)?.given.turn === runner.turn;
  },

  'TRN-08 TRN-13 nothing runs before its time': ({ before, action, answer }) => {
    const claimed = claimOf(action, answer);
    const turn = claimed && before.turns[claimed.given.turn];
    return !turn || turn.status === 'running' || turn.due;
  },

  'TRN-13 the first signal applies, even if it is early': ({ before, action, answer, after }) => {
    const sent = action.type === 'signal' ? action : null;
    return before.turns.every((was, n) => {
      const is = after.turns[n];
      if (is.status === 'waiting' && is.signal !== null) return false;
      if (sent?.turn !== n || was.signal !== null || !isOpen(was)) return is.signal === was.signal;
      return is.signal === sent.payload && (answer as { accepted?: boolean }).accepted === true;
    });
  },

  'TRN-13 a wait has one result: the signal or the time-out': ({ before, action, answer, after }) => {
    const claimed = claimOf(action, answer);
    const timedOut = claimed && before.turns[claimed.given.turn].status === 'waiting';
    if (timedOut && claimed.given.answer !== 'timed out') return false;
    return after.turns.every((turn, n) => {
      if (!isOpen(turn)) return true;
      const was = before.turns.at(n)?.answer ?? null;
      const is = turn.answer;
      return (was === null || is === was) && (is === null || is === 'timed out' || is === turn.signal);
    });
  },

  'TRN-15 an attempt receives all data stored before it': ({ before, action, answer }) => {
    const claimed = claimOf(action, answer);
    const turn = claimed && before.turns[claimed.given.turn];
    if (!turn || isRepeated(before, claimed)) return true;
    const { step, answer: result } = claimed.given;
    return (step || !turn.acknowledged) && (result !== null || turn.answer === null);
  },

  'BOT-20 every success writes one checkpoint, in the order of the lane': ({ answer, after }) => {
    const succeeded = [...after.turns.keys()].filter((n) => after.turns[n].status === 'awaiting-input');
    return succeeded.join() === after.checkpoints.join() && answer !== 'CHECKPOINT_CONFLICT';
  },

  'TRN-01 nothing starts in a session that has expired': ({ before, action, answer, after }) => {
    if (!after.expired) return true;
    const claimed = claimOf(action, answer);
    const goesOn = !claimed || !before.expired || isRepeated(before, claimed);
    return goesOn && after.turns.every((turn) => !isOpen(turn) || turn.status === 'running');
  },
} as const satisfies Record<string, (step: LaneStep) => boolean>;

export type RuleName = keyof typeof RULES;

export const LANE_PROPERTIES: Properties<LaneState, LaneAction, Answer> = {
  rules: RULES,

  isAtRest: ({ turns }) => !turns.some(isOpen),

  /** Clients are silent, notifications are lost, and the running worker is dead: only time and new workers remain. */
  recovery: ({ before: { attention, fence, attempts }, action, answer }) => {
    if (action.type === 'time') return 'itself';
    // Only the reconcilers notify, and only lanes that the store reports.
    if (action.type === 'claim' && attention && action.claim === fence + 1) return answer ? 'enters' : 'itself';
    return action.type === 'settle' && action.index !== null && isOf(attempts[0], action.hold) ? 'finishes' : null;
  },
};

const LEADS_TO: Readonly<Record<string, readonly string[]>> = {
  queued: ['running', 'superseded', 'cancelled'],
  running: ['queued', 'waiting', 'awaiting-input', 'failed', 'cancelled'],
  waiting: ['queued', 'running', 'cancelled'],
};

const HAS_RUN: readonly string[] = ['running', 'waiting', 'awaiting-input', 'failed'];

function isOf(attempt: Attempt, { turn, fence }: { turn: number; fence: number }): boolean {
  return attempt.turn === turn && attempt.fence === fence;
}

/** Returns the number of messages of the turn in the conversation. */
function kept({ messages }: LaneState, turn: number): number {
  return messages.filter((of) => of === turn).length;
}

/** Returns the first cancel mode of the turn, before this step or in it. */
function howAsked({ before, action, answer }: LaneStep, turn: number): string | null {
  const now = askedBy(before, action, answer);
  return before.turns[turn]?.asked ?? (now?.turn === turn ? now.mode : null);
}

/** Returns whether an attempt of the turn fails in this step. */
function isFailure({ before, action, after }: LaneStep, turn: number): boolean {
  if (before.turns[turn].status !== 'running' || after.turns[turn].status === 'cancelled') return false;
  if (!('hold' in action) || action.hold.turn !== turn || !isOf(before.attempts[0], action.hold)) return false;
  return action.type === 'retry' || (action.type === 'settle' && action.status === 'failed');
}

/** Returns whether an attempt of the turn is counted as lost in this step. */
function isLoss({ before, action, answer, after }: LaneStep, turn: number): boolean {
  const is = after.turns[turn];
  if (before.turns[turn].status !== 'running' || is.status === 'cancelled') return false;
  if ('hold' in action && action.hold.turn === turn && isOf(before.attempts[0], action.hold)) return false;
  const claimed = claimOf(action, answer);
  const replaced = claimed !== null && claimed.given.turn === turn && !isRepeated(before, claimed);
  return replaced || is.status !== 'running';
}
