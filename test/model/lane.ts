import { type CancelMode, type TurnStatus, type WhenBusy } from 'nestjs-agent-sessions';

/** Turns are numbered from 0 in the order of acceptance. Times are modelled only as passed or not. */
export interface LaneState {
  /** Number of losses without a new step with which a turn fails. */
  readonly maxLost: number;
  turns: ModelTurn[];
  /** The last granted fence. */
  fence: number;
  /** The holder of the lane: its claim, and whether the lease has lapsed. */
  runner: { turn: number; claim: number; lapsed: boolean } | null;
  /** True if the reconcilers will check the lane, now or when it is due. */
  attention: boolean;
  /** The turn that wrote each checkpoint, by index. */
  checkpoints: number[];
  /** The turn of each user message. */
  messages: number[];
  /** True if the session has expired. */
  expired: boolean;
  /** The attempts, latest first. */
  attempts: Attempt[];
}

export interface ModelTurn {
  position: number;
  /** `awaiting-input` also represents `completed`, which the lane handles equally. */
  status: Exclude<TurnStatus, 'completed'>;
  /** True after the first claim: the turn holds its lane until it ends, also while it is queued again. */
  begun: boolean;
  failures: number;
  lost: number;
  /** Number of attempts lost since a step was stored. */
  lostSinceStep: number;
  mark: CancelMode | null;
  /** For a queued turn: no retry delay or pause after a loss remains. For a waiting turn: it has timed out. */
  due: boolean;
  /** The first payload of the signal. */
  signal: Payload | null;
  /** The result of its wait, a stored step. */
  answer: Payload | 'timed out' | null;
  /** True if its only other step is stored. */
  step: boolean;
  /** The fence of the worker that settled the turn. */
  settledBy: number | null;
  /** The first cancel mode while it held the lane. Recorded only for the rules of the model. */
  asked: CancelMode | null;
  /** True if a worker received the answer that the step is stored. Recorded only for the rules of the model. */
  acknowledged: boolean;
}

/** Number of losses from which a turn is granted only to claims that accept suspects. */
export const SUSPECT_FROM_LOST = 2;

export type Payload = 'a' | 'b';

export interface Hold {
  readonly turn: number;
  readonly fence: number;
}

/** The data that a worker received with a claim. */
export interface Given extends Hold {
  readonly failures: number;
  readonly lost: number;
  /** Index of the next checkpoint. */
  readonly index: number;
  readonly step: boolean;
  readonly answer: ModelTurn['answer'];
}

/**
 * The attempt of a worker after a claim. The store identifies workers only by their claims, so the model has no other
 * workers. All their failures are covered by one rule: **any attempt may send any call at any time, once more than
 * before, and may never receive the answer.** A crashed attempt sends nothing more. An attempt that was frozen beyond
 * its lease sends its calls later. A call that arrives late or twice, or after its sender died, counts as sent at that
 * time. A call with a lost answer is sent again, or never.
 */
export interface Attempt extends Given {
  /** Its name: its fence. 1.5 is the claim in the settle with fence 1. */
  readonly claim: number;
  /** True if the store has answered that the attempt ended: settled, queued again or waiting. Its calls may still arrive. */
  over: boolean;
}

export type LaneAction =
  | { readonly type: 'accept'; readonly turn: number; readonly whenBusy: WhenBusy }
  | { readonly type: 'claim'; readonly claim: number; readonly suspects?: boolean }
  | { readonly type: 'renew' | 'retry' | 'release' | 'wait' | 'saveStep'; readonly hold: Hold }
  | ({ readonly type: 'settle'; readonly hold: Hold } & Settlement)
  | { readonly type: 'signal'; readonly turn: number; readonly payload: Payload }
  | { readonly type: 'cancel'; readonly turn: number; readonly mode: CancelMode }
  | { readonly type: 'expire' }
  /** The time that the lane waits for passes: the end of a lease, a retry delay or a wait. */
  | { readonly type: 'time' };

export interface Settlement {
  readonly status: 'awaiting-input' | 'failed' | 'cancelled';
  /** The index of the checkpoint if the turn succeeded. */
  readonly index: number | null;
  /** True if the user's message is stored. */
  readonly message: boolean;
  /** The claim of the lane's next turn in the same commit. */
  readonly next: number | null;
}

export type Refusal = 'TURN_FENCED' | 'CHECKPOINT_CONFLICT' | 'SESSION_BUSY' | 'SESSION_STATE' | 'TURN_SETTLED';

/** The answer to the caller. A rejected call changes nothing. */
export type Answer = Refusal | Given | Readonly<Record<string, unknown>> | null;

/** The cancel mode of a policy for the holder of the lane, and whether it supersedes queued turns (TRN-06). */
export const POLICIES: Readonly<Record<WhenBusy, { readonly stops?: CancelMode; readonly supersedes?: true }>> = {
  enqueue: {},
  reject: {},
  interrupt: { stops: 'interrupt' },
  rollback: { stops: 'rollback' },
  latest: { supersedes: true },
  replace: { stops: 'interrupt', supersedes: true },
};

export function emptyLane(maxLost: number): LaneState {
  return {
    maxLost,
    turns: [],
    fence: 0,
    runner: null,
    attention: false,
    checkpoints: [],
    messages: [],
    expired: false,
    attempts: [],
  };
}

export function copyOf(lane: LaneState): LaneState {
  return {
    ...lane,
    turns: lane.turns.map((turn) => ({ ...turn })),
    runner: lane.runner && { ...lane.runner },
    checkpoints: [...lane.checkpoints],
    messages: [...lane.messages],
    attempts: lane.attempts.map((attempt) => ({ ...attempt })),
  };
}

export function isOpen({ status }: ModelTurn): boolean {
  return status === 'queued' || status === 'running' || status === 'waiting';
}

export function holdsLane(turn: ModelTurn): boolean {
  return turn.begun && isOpen(turn);
}

export function isRefusal(answer: Answer): answer is Refusal {
  return typeof answer === 'string';
}
