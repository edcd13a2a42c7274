import { type CancelMode, type TurnStatus, type WhenBusy } from 'nestjs-agent-sessions';

/** Turns are numbered from 0 in the order of acceptance. Times are not modelled, only whether they have come. */
export interface LaneState {
  /** Losses that a turn fails with. */
  readonly maxLost: number;
  turns: ModelTurn[];
  /** The last one that was given out. */
  fence: number;
  /** Who holds the lane: the claim it was given to, and whether the lease is over. */
  runner: { turn: number; claim: number; lapsed: boolean } | null;
  /** Whether the reconcilers will look at the lane, now or when its time comes. */
  attention: boolean;
  /** The turn that wrote each, by index. */
  checkpoints: number[];
  /** The turn that each user's message is of. */
  messages: number[];
  /** Whether the session is. */
  expired: boolean;
  /** The latest first. */
  attempts: Attempt[];
}

export interface ModelTurn {
  position: number;
  /** `awaiting-input` stands for `completed` as well: the lane makes no difference. */
  status: Exclude<TurnStatus, 'completed'>;
  /** It was claimed before: it holds its lane until it ends, also while it is queued again. */
  begun: boolean;
  failures: number;
  lost: number;
  mark: CancelMode | null;
  /** Of a queued turn: not put off by a retry's delay or a pause after a loss. Of a waiting one: timed out. */
  due: boolean;
  /** The first payload. */
  signal: Payload | null;
  /** What became of its wait, which is a stored step. */
  answer: Payload | 'timed out' | null;
  /** Whether its only other step is stored. */
  step: boolean;
  /** The fence with which a worker settled it. */
  settledBy: number | null;
  /** How it was first asked to stop while it held the lane. Known to the model alone, for its rules. */
  asked: CancelMode | null;
  /** Whether a worker was told that the step is stored. Known to the model alone, for its rules. */
  acknowledged: boolean;
}

/** From so many losses on, a turn is given only to claims that take suspects. */
export const SUSPECT_FROM_LOST = 2;

export type Payload = 'a' | 'b';

export interface Hold {
  readonly turn: number;
  readonly fence: number;
}

/** What a worker was given by a claim. */
export interface Given extends Hold {
  readonly failures: number;
  readonly lost: number;
  /** Index of the next checkpoint. */
  readonly index: number;
  readonly step: boolean;
  readonly answer: ModelTurn['answer'];
}

/**
 * What a worker makes of a claim. The store tells workers apart by their claims only, so the model has no other workers.
 * What can happen to them, and to their calls on the way, comes down to this: **at any time any attempt may send any call,
 * once more than before, and nobody has to hear the answer.** One that has crashed says nothing any more. One that froze
 * beyond its lease says later what it would have said. A call that is delivered late or twice, or after its sender died,
 * is a call that the attempt sends then. One whose answer was lost is sent again, or never.
 */
export interface Attempt extends Given {
  /** Its name: the fence it was given with; one and a half after settling with fence 1 was to hand over the next turn. */
  readonly claim: number;
  /** The store has told it that it ended: settled, put back or parked. Its calls may still arrive. */
  over: boolean;
}

export type LaneAction =
  | { readonly type: 'accept'; readonly turn: number; readonly whenBusy: WhenBusy }
  | { readonly type: 'claim'; readonly claim: number; readonly suspects?: true }
  | { readonly type: 'renew' | 'retry' | 'release' | 'wait' | 'saveStep'; readonly hold: Hold }
  | ({ readonly type: 'settle'; readonly hold: Hold } & Settlement)
  | { readonly type: 'signal'; readonly turn: number; readonly payload: Payload }
  | { readonly type: 'cancel'; readonly turn: number; readonly mode: CancelMode }
  | { readonly type: 'expire' }
  /** What the lane waits for by the store's clock comes: the end of a lease, of a retry's delay, of a wait. */
  | { readonly type: 'time' };

export interface Settlement {
  readonly status: 'awaiting-input' | 'failed' | 'cancelled';
  /** Of the checkpoint, when it succeeded. */
  readonly index: number | null;
  /** Whether the user's message is kept. */
  readonly message: boolean;
  /** The claim of the lane's next turn in the same commit. */
  readonly next: number | null;
}

export type Refusal = 'TURN_FENCED' | 'CHECKPOINT_CONFLICT' | 'SESSION_BUSY' | 'SESSION_STATE' | 'TURN_SETTLED';

/** What the caller is told; a refusal changes nothing. */
export type Answer = Refusal | Given | Readonly<Record<string, unknown>> | null;

/** How a policy asks the holder of the lane to stop, and whether it supersedes what is queued (TRN-06). */
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
