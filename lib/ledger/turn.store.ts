import { type KeepCheckpoints } from './checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from './checkpoint.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { type NewMessage } from './conversation.store.js';
import { type Message } from './message.js';
import { type Session, type SessionChange } from './session.js';
import { type StateChange, type StateDocument, type StateName } from './state.store.js';
import { type Lane, type LaneMode, type LanePage, type LaneQuery } from './lane.js';
import { type StepKey, type StoredStep } from './turn-step.js';
import { type SpentTokens, type TurnSpending } from './turn-usage.js';
import {
  type CancelMode,
  type SettledTurnStatus,
  type Turn,
  type TurnErrorRecord,
  type TurnReply,
  type TurnRequest,
  type TurnStatus,
  type WhenBusy,
} from './turn.js';

/** A turn that wants a place in its lane. */
export interface AcceptTurn {
  /** Minted by the caller, so that the same call sent twice is accepted once. */
  readonly id: string;
  readonly sessionId: string;
  readonly orchestrator: string;
  readonly version: string;
  readonly request: TurnRequest;
  readonly attributes: JsonObject;
  readonly whenBusy: WhenBusy;
  readonly maxQueued: number;
  readonly idempotency?: {
    readonly key: string;
    /** Of orchestrator and input: the same key with another hash is a conflict. */
    readonly hash: string;
    /** Milliseconds for which the key is remembered. */
    readonly ttlMs: number;
  };
  /** Milliseconds after its creation that a session takes turns; left out: no limit. */
  readonly maxSessionLifetimeMs?: number;
  /** Sessions live in a foreign store, and the caller has checked this one there. */
  readonly foreignSession?: boolean;
  /** The caller has a worker that is free for the turn if its lane is: to be claimed in the same commit then. */
  readonly claim?: ClaimRequest;
}

/** What became of it. */
export interface AcceptedTurn {
  /** As it was accepted, or as the one that was there already stands now. */
  readonly turn: Turn;
  /** The turn was there already: the call was sent twice, or its idempotency key is known. */
  readonly duplicate: boolean;
  /** The lane has work and perhaps nobody who knows: ring. */
  readonly ring: boolean;
  /**
   * What `claim` right after would have given for the claim that the request brought: the turn found its lane idle. A store
   * may leave that claim aside and ring.
   */
  readonly claimed?: ClaimedTurn;
}

/** What a worker says of itself when it asks for the next turn of a lane. */
export interface ClaimRequest {
  /** Names the worker, then a slash, then the claim: tells a claim that is sent twice from a second claim. */
  readonly holder: string;
  /** Milliseconds, by the store's clock, until the turn counts as lost unless its lease is renewed. */
  readonly leaseMs: number;
  /** A turn whose attempts were lost this often fails as WORKER_LOST. */
  readonly maxLost: number;
  /** Milliseconds before the next attempt of a turn that was lost twice; doubles with each further loss. Default 0. */
  readonly lossPauseMs?: number;
  /** The longest such pause. Default: `lossPauseMs`. */
  readonly maxLossPauseMs?: number;
  /** Whether the claim may give a turn that was lost twice or more. Default: no. */
  readonly suspects?: boolean;
  /** How many messages of history the worker wants, by orchestrator; others get none. */
  readonly windows: Readonly<Record<string, number>>;
  /** Which state documents of the session the worker wants, by orchestrator; others get none. Left out: none at all. */
  readonly documents?: Readonly<Record<string, readonly StateName[]>>;
  /** Receives what the claim found besides the turn that it gives, after its commit. */
  readonly onNotice?: (notice: ClaimNotice) => void;
}

/** What a claim found besides the turn that it gives. */
export type ClaimNotice =
  /** The head's lease had ended. The turn is as the claim left it: running, queued after a pause, or failed. */
  | { readonly type: 'lost'; readonly turn: Turn; readonly holder: string }
  /** The head is due and was lost twice or more, and the claim takes no such turn. */
  | { readonly type: 'suspect' };

/** The right to write for a running turn. Every write is refused once a later fence was given out. */
export interface TurnHold {
  readonly sessionId: string;
  readonly turnId: string;
  readonly fence: number;
}

/** A turn that is ours to run, with all that it needs. */
export interface ClaimedTurn {
  readonly hold: TurnHold;
  readonly turn: Turn;
  /** `null` when sessions live in a foreign store. */
  readonly session: Session | null;
  /** The orchestrator's latest checkpoint in this session. */
  readonly checkpoint: Checkpoint | null;
  readonly history: readonly Message[];
  readonly steps: readonly StoredStep[];
  /** Those that the request names for the turn's orchestrator, in its order; `null` for one that is not there. */
  readonly documents: readonly (StateDocument | null)[];
  /** By namespace, the epoch that was begun in this session last, see StateStore.reset; nothing where none was. */
  readonly epochs: Readonly<Record<string, string>>;
}

/** What a worker must know when it renews. */
export interface RenewedLease {
  /** Somebody asked the turn to stop. */
  readonly cancelMode?: CancelMode;
}

/** Everything that a turn changes, written in one commit or not at all. */
export interface TurnSettlement {
  readonly status: SettledTurnStatus;
  readonly reply?: TurnReply;
  readonly error?: TurnErrorRecord;
  /** What the turn did, for operators. */
  readonly report?: JsonObject;
  /** Replaces the turn's; left out: what was recorded before stays. */
  readonly usage?: SpentTokens;
  /** Added to the conversation in order. */
  readonly messages: readonly NewMessage[];
  readonly checkpoint?: NewCheckpoint;
  readonly keepCheckpoints: KeepCheckpoints;
  /** Appends to state documents of the session, each of another one. */
  readonly stateChanges?: readonly StateChange[];
  /** An active session that was idle for more milliseconds counts as suspended when this touches it. Left out: never. */
  readonly sessionTtlMs?: number;
}

/** What a settlement made of the lane. */
export interface SettledTurn {
  readonly turn: Turn;
  /** What the turn's activity made of the session, when it was touched. */
  readonly sessionChange?: SessionChange;
  /** The next turn of the lane, claimed in the same commit, when it was asked for and one is due. */
  readonly next: ClaimedTurn | null;
  /** The lane has a turn that is due and nobody has claimed: ring. */
  readonly ring: boolean;
}

/** An attempt that failed, and is not the last. */
export interface TurnFailure {
  readonly error: TurnErrorRecord;
  /** Before the next attempt. */
  readonly delayMs: number;
  readonly spending?: TurnSpending;
}

/** What an attempt waits for. */
export interface TurnWait {
  readonly signal: string;
  /** The step that takes the result. */
  readonly step: StepKey;
  /** Left out: waits for as long as it takes. */
  readonly timeoutMs?: number;
  /** Recorded when the wait parks the turn. */
  readonly spending?: TurnSpending;
}

/** A turn that the handler of a running turn waits for. */
export interface AwaitedTurn {
  readonly sessionId: string;
  /** It need not be accepted yet. */
  readonly turnId: string;
}

/** The payload that counts of a signal's name. */
export interface StoredSignal {
  readonly name: string;
  readonly payload: JsonValue;
}

/** What became of a signal. */
export interface SignalledTurn {
  readonly turn: Turn;
  /** False when the name was signalled before: the first payload stays. */
  readonly accepted: boolean;
  readonly ring: boolean;
}

/** A turn that was changed from outside, and whether its lane must be rung. */
export interface ChangedLane {
  readonly turn: Turn;
  readonly ring: boolean;
}

/** How a lane, or all of them, is to go on. */
export interface LaneControl {
  /** `null`: all lanes, on top of what each of them has. */
  readonly sessionId: string | null;
  readonly mode: LaneMode;
  /** Sessions live in a foreign store, and the caller has checked this one there. */
  readonly foreignSession?: boolean;
}

/** Which turns of a session to list. */
export interface TurnQuery {
  /** The session whose turns they are. */
  readonly sessionId: string;
  /** Left out: in every status. */
  readonly status?: TurnStatus | readonly TurnStatus[];
  /** By position in the lane; `desc` begins with the latest turn. Default `asc`. */
  readonly order?: 'asc' | 'desc';
  /** Turns that come after this position in the order asked for. Default: from the first of them. */
  readonly after?: number;
  /** How many turns at most. Default 50. */
  readonly limit?: number;
}

/**
 * The turns of every session and who may run them: the only truth about order, ownership and results (TRN-01).
 *
 * Every method is one atomic operation by the store's clock and may be sent twice without harm. Those that take a
 * {@link TurnHold} throw TurnFencedError, and change nothing, once the hold was given to another worker or its session
 * is gone; retry, release and a wait that parks end the hold, so that sent again they are fenced. The transitions:
 *
 * | method | from | to |
 * | --- | --- | --- |
 * | accept | | queued; others by `whenBusy`, as below; running when it is claimed at once |
 * | claim | queued and due; waiting and timed out | running with the next fence |
 * | claim | running and lapsed | lost once more: the first time running with the next fence; then queued, due after a pause; failed when it was lost `maxLost` times |
 * | settle | running | awaiting-input, completed, failed, cancelled |
 * | retry | running | queued, due later, still the head; one failure more |
 * | release | running | queued, still the head, nothing counted |
 * | wait | running | waiting, still the head; or stays running when the signal is there already |
 * | signal | waiting | queued, with the payload as a stored step |
 * | cancel | queued, waiting | cancelled |
 * | cancel | running | running, marked; the worker settles it |
 * | retry, release, wait, claim | running, and marked or its session expired | cancelled: it gets no further attempt |
 *
 * A claim without `suspects` leaves a head that was lost twice or more where it is; so does the claim of a settle.
 *
 * The first mark stays. Where a waiting or marked turn ends in the store, without its worker, `interrupt` keeps the
 * user's message in the conversation, unless that was reset since the turn was claimed first; so it does where accept ends a turn
 * that is queued again.
 *
 * What `whenBusy` does (TRN-06) depends on whether a turn has begun, which it has from its first claim on (`startedAt`): the
 * head that has holds the lane until it ends. Turns that have not begun are superseded by `latest` and `replace`, and count
 * for `maxQueued`. `interrupt`, `rollback` and `replace` mark the holder while it runs, and cancel it while it is waiting or
 * queued again.
 *
 * While a lane or all lanes are `paused`, claim and the claim of a settle give nothing, though the head be due or lapsed;
 * while they are `draining`, accept takes nothing new (TRN-11).
 *
 * A session that expires cancels its queued and waiting turns in the same commit (AtomicSessionStoreAdapter.expire); one that
 * is revoked has its running turn marked as well.
 */
export interface TurnLedger {
  /**
   * Puts a turn at the end of its lane. Checked in this order: the same id or idempotency key, then the session, then
   * whether its lane is draining, then policy and limits.
   *
   * The request's claim is for the new turn alone, and only when nothing is open before it: what was accepted before is
   * claimed by `claim`. Sent twice, the second answer has the claimed turn as well, for as long as that claim holds it.
   * @throws IdempotencyConflictError, SessionNotFoundError, SessionStateError, LaneDrainingError, SessionBusyError,
   * LaneFullError
   */
  accept(request: AcceptTurn): Promise<AcceptedTurn>;
  /** The head of the lane when it is due and nobody else runs it, else `null`. */
  claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null>;
  /** The turn stays the worker's for `leaseMs` milliseconds from now, by the store's clock. @throws TurnFencedError */
  renew(hold: TurnHold, leaseMs: number): Promise<RenewedLease>;
  /**
   * @throws StateResetError when one of the namespaces that it writes to (the conversation's, when it adds messages) was reset
   * since the turn was claimed first; CheckpointConflictError when the checkpoint is not the next one.
   * Nothing is written then, and the turn is still running
   */
  settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn>;
  /** Counts the failure and queues the turn again; it stays the head of its lane. */
  retry(hold: TurnHold, failure: TurnFailure): Promise<Turn>;
  /** Gives the turn back without counting a failure. @param delayMs before the lane is offered again; 0: at once */
  release(hold: TurnHold, delayMs: number, spending?: TurnSpending): Promise<Turn>;
  /** @returns the payload when the signal came early; the turn then stays running */
  wait(
    hold: TurnHold,
    wait: TurnWait,
  ): Promise<{ readonly turn: Turn; readonly received?: { readonly payload: JsonValue } }>;
  /** Replaces the turns that the attempt waits for (FIX-04). They count as long as its hold does. @throws TurnFencedError */
  saveAwaited(hold: TurnHold, turns: readonly AwaitedTurn[]): Promise<void>;
  /** The turns that the session's running turn waits for, as its attempt saved them last; none when no turn runs. */
  awaited(sessionId: string): Promise<readonly AwaitedTurn[]>;
  /** @throws TurnNotFoundError; TurnSettledError when the turn is over */
  signal(turnId: string, name: string, payload: JsonValue): Promise<SignalledTurn>;
  /** Without effect on a turn that is over. @throws TurnNotFoundError */
  cancel(turnId: string, mode: CancelMode): Promise<ChangedLane>;
  /**
   * Stores a step's result. A step that is stored already keeps its first result.
   * @param before stored in the same commit, unless it is stored already: what the step rests on
   * @param spending recorded in the same commit, also when the step is stored already
   * @returns the step with the result that is stored
   */
  saveStep(hold: TurnHold, step: StoredStep, before?: StoredStep, spending?: TurnSpending): Promise<StoredStep>;
  /** @returns `null` for a turn that is not there */
  get(turnId: string): Promise<Turn | null>;
  /** By position in the lane, in the order asked for. */
  list(query: TurnQuery): Promise<Turn[]>;
  /** What a turn stored of its steps, in any order. An unknown turn has none. */
  steps(turnId: string): Promise<StoredStep[]>;
  /** What was signalled to a turn, in any order. An unknown turn has none. */
  signals(turnId: string): Promise<StoredSignal[]>;
  /**
   * Pauses, drains or opens a lane, or all of them. Once it has returned, no claim of a lane that it paused succeeds, and
   * nothing is accepted by one that drains; of all lanes: none that begins then. A lane that is opened is offered again.
   * @throws SessionNotFoundError
   */
  control(control: LaneControl): Promise<{ readonly ring: boolean }>;
  /** Cancels what is queued or waiting, as cancel does; a turn that runs goes on. @returns how many */
  clear(sessionId: string): Promise<number>;
  /** Open and empty when nothing is known of the session. */
  lane(sessionId: string): Promise<Lane>;
  /** Those that have open turns, by session id. Costs the page, however many sessions there are. */
  lanes(query: LaneQuery): Promise<LanePage>;
  /**
   * Sessions whose lanes somebody must look at now: work without a worker, a lapsed lease, a due retry or time-out.
   * Each is left out of the next calls for a while that grows as long as nobody claims. None while all lanes are paused; one
   * that is paused itself is left out from the claim on that it refuses, until it is opened.
   * @param includeOffered includes the lanes that are left out for a while, and begins with those that wait longest: what they were
   * offered to is gone (FIX-16)
   */
  due(limit: number, includeOffered?: boolean): Promise<string[]>;
  /**
   * Deletes at most `limit` turns that settled strictly more than `olderThanMs` ago, the oldest first, with their steps,
   * signals and idempotency keys. What they wrote (messages, checkpoints) stays. @returns how many went
   */
  purgeSettled(olderThanMs: number, limit: number): Promise<number>;
}

/** Says that a turn changed. A hint may come twice, late or never: whoever hears it reads the ledger. */
export interface TurnHints {
  /**
   * Whether a listener hears of what this process changes, or of what any process that works on the store does. Default
   * `process`: whoever waits for a turn of another process learns of it by polling.
   */
  readonly reach?: 'process' | 'store';
  /**
   * @param listener is given the turn as well when this process has changed it and has it at hand
   * @returns ends the subscription
   */
  subscribe(listener: (turnId: string, turn?: Turn) => void): () => void;
}
