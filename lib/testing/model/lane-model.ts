import { type LaneMode } from '../../ledger/lane.js';
import { type CancelMode, isTerminal, type TurnStatus } from '../../ledger/turn.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type LaneClaim, type LaneOperation } from './lane-operation.js';
import { type SequentialModel } from './specimen.js';

export const MAX_QUEUED = 3;
/** Claims request no pause after a loss, so a lost turn is due immediately. */
export const MAX_LOST = 4;
const SUSPECT_FROM_LOST = 2;
/** The number of messages that a claim requests. */
export const WINDOW = 3;

interface ModelTurn {
  readonly id: string;
  readonly position: number;
  status: TurnStatus;
  /** True from the first claim on: the turn holds its lane. */
  begun: boolean;
  failures: number;
  lost: number;
  /** Number of attempts lost since a step was stored. */
  lostSinceStep: number;
  mark: CancelMode | null;
  /** When the next attempt is due. */
  dueAt: number | null;
  waitsFor: { readonly signal: string; readonly until: number | null } | null;
  readonly signals: Record<string, string>;
  /** Results by name; the first result of a name remains. */
  readonly steps: Record<string, unknown>;
  /** The fence of the worker that settled the turn. */
  settledWith: number | null;
}

type Operation<Type extends LaneOperation['type']> = Extract<LaneOperation, { readonly type: Type }>;

/** A plain model of the lane of a session, after the transition table of TurnLedger. */
export class LaneModel implements SequentialModel<LaneOperation> {
  now = 0;
  session: 'created' | 'active' | 'expired' | null = 'created';
  erased = false;
  mode: LaneMode = 'open';
  turns: ModelTurn[] = [];
  /** The worker that runs the head. */
  runner: { readonly holder: string; readonly fence: number; leaseUntil: number } | null = null;
  lastFence = 0;
  checkpoints = 0;
  /** Ids of the turns whose messages were stored. */
  messages: string[] = [];

  elapse(ms: number): void {
    this.now += ms;
  }

  /** Returns whether a claim would find a turn. */
  get isClaimable(): boolean {
    const { head } = this;
    if (head?.status === 'running') return this.hasLapsed;
    if (head?.status === 'waiting') return (head.waitsFor?.until ?? Infinity) <= this.now;
    return head !== undefined && (head.dueAt ?? 0) <= this.now;
  }

  apply(operation: LaneOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'accept':
        return this.accept(operation, seen);
      case 'claim':
        return this.claim(operation, seen);
      case 'signal':
        return this.signal(operation);
      case 'cancel':
        return this.cancel(operation);
      case 'control':
        return this.control(operation);
      case 'clear':
        return this.cancelSuspended();
      case 'create':
      case 'expire':
      case 'revoke':
      case 'delete':
      case 'erase':
        return this.changeSession(operation.type);
      case 'session':
        return this.session;
      case 'lane':
        return this.shown();
      case 'turns':
        return this.turns.map(shown);
      case 'messages':
        return [...this.messages];
      case 'checkpoints':
        return [...Array(this.checkpoints).keys()];
      default:
        return this.write(operation, seen);
    }
  }

  private accept({ turnId, whenBusy, claim }: Operation<'accept'>, seen: unknown): unknown {
    const known = this.turns.find(({ id }) => id === turnId);
    // A store may ignore the claim.
    const claimSeen = (seen as { readonly claimed?: unknown }).claimed ?? null;
    if (known) {
      const isHeld = known === this.head && this.runner?.holder === claim?.holder && !this.hasLapsed;
      return {
        position: known.position,
        duplicate: true,
        claimed: isHeld && claimSeen ? this.shownClaim(known) : null,
      };
    }
    if (this.session === null) return 'SESSION_NOT_FOUND';
    if (this.session === 'expired') return 'SESSION_STATE';
    if (this.mode === 'draining') return 'LANE_DRAINING';
    const { head } = this;
    if (whenBusy === 'reject' && head) return 'SESSION_BUSY';
    const queued = this.open.filter(({ begun }) => !begun);
    const supersedes = whenBusy === 'latest' || whenBusy === 'replace';
    if ((supersedes ? 0 : queued.length) >= MAX_QUEUED) return 'LANE_FULL';

    if (supersedes) for (const turn of queued) Object.assign(turn, { status: 'superseded', dueAt: null });
    if (head?.begun) {
      if (whenBusy === 'rollback') this.ask(head, 'rollback');
      if (whenBusy === 'interrupt' || whenBusy === 'replace') this.ask(head, 'interrupt');
    }
    const position = this.turns.length + 1;
    const turn = newTurn(turnId, position);
    this.turns.push(turn);
    const claimed = claim && claimSeen && turn === this.head ? this.claim(claim, claimSeen) : null;
    return { position, duplicate: false, claimed };
  }

  private claim(claim: LaneClaim, seen: unknown): unknown {
    const { head } = this;
    // A repeated claim gets the same answer.
    if (head && this.runner?.holder === claim.holder && !this.hasLapsed) return this.shownClaim(head);
    while (this.head && this.isClaimable) {
      if (this.mode === 'paused') return null;
      const turn = this.head;
      if (turn.status !== 'running' && turn.lost >= SUSPECT_FROM_LOST && !claim.suspects) return null;
      if (!this.leavesAfterLoss(turn)) return this.run(turn, claim, fenceIn(seen));
      this.runner = null;
    }
    return null;
  }

  /** Handles a head whose worker was lost. @returns false if it runs again immediately */
  private leavesAfterLoss(turn: ModelTurn): boolean {
    if (turn.status !== 'running') return false;
    if (this.mustEnd(turn)) {
      this.stop(turn, turn.mark ?? 'cancel');
    } else {
      turn.lost += 1;
      turn.lostSinceStep += 1;
      if (turn.lostSinceStep >= MAX_LOST || turn.lost >= 10 * MAX_LOST) turn.status = 'failed';
      else if (turn.lost >= SUSPECT_FROM_LOST) Object.assign(turn, { status: 'queued', dueAt: this.now });
    }
    return turn.status !== 'running';
  }

  private run(turn: ModelTurn, { holder, leaseMs }: LaneClaim, fence: number): unknown {
    if (turn.waitsFor) store(turn, turn.waitsFor.signal, { received: false });
    Object.assign(turn, { status: 'running', begun: true, waitsFor: null, dueAt: null });
    // Fences must increase; any other number will not match the store's answer.
    this.lastFence = fence > this.lastFence ? fence : Infinity;
    this.runner = { holder, fence: this.lastFence, leaseUntil: this.now + leaseMs };
    return this.shownClaim(turn);
  }

  private shownClaim(turn: ModelTurn): unknown {
    return {
      turnId: turn.id,
      fence: this.runner?.fence,
      failures: turn.failures,
      lost: turn.lost,
      checkpoint: this.checkpoints - 1,
      history: this.messages.slice(-WINDOW),
      steps: { ...turn.steps },
    };
  }

  /** Applies an operation that only the holder of the running turn may send. */
  private write(operation: Operation<HoldersWrite>, seen: unknown): unknown {
    const { hold } = operation;
    if (operation.type === 'settle') {
      const settled = this.turns.find(({ id }) => id === hold.turnId);
      if (settled?.settledWith === hold.fence) return this.handOver(settled, operation.next, seen);
    }
    const turn = this.heldBy(hold);
    if (!turn) return 'TURN_FENCED';
    switch (operation.type) {
      case 'renew':
        if (this.runner) this.runner.leaseUntil = this.now + operation.leaseMs;
        return { mark: turn.mark };
      case 'saveStep':
        return { value: store(turn, operation.name, operation.value) };
      case 'settle':
        return this.settle(turn, operation, seen);
      case 'wait':
        return this.wait(turn, operation);
      case 'retry':
        return this.putBack(turn, {
          status: 'queued',
          failures: turn.failures + 1,
          dueAt: this.now + operation.delayMs,
        });
      case 'release':
        return this.putBack(turn, { status: 'queued' });
    }
  }

  private settle(turn: ModelTurn, { hold, status, turnIndex, next }: Operation<'settle'>, seen: unknown): unknown {
    const succeeded = status === 'awaiting-input';
    if (succeeded && turnIndex !== this.checkpoints) return 'CHECKPOINT_CONFLICT';
    Object.assign(turn, { status, mark: null, settledWith: hold.fence });
    if (status === 'failed') turn.failures += 1;
    if (succeeded) {
      this.messages.push(turn.id);
      this.checkpoints += 1;
      if (this.session === 'created') this.session = 'active';
    }
    this.runner = null;
    return this.handOver(turn, next, seen);
  }

  private handOver(turn: ModelTurn, next: LaneClaim | null, seen: unknown): unknown {
    const { status } = turn;
    const claimed = next && this.claim(next, (seen as { readonly next?: unknown }).next);
    return { status, next: claimed, notify: !claimed && this.runner === null && this.isClaimable };
  }

  private wait(turn: ModelTurn, { signal, timeoutMs }: Operation<'wait'>): unknown {
    const early = turn.signals[signal];
    if (early !== undefined) {
      store(turn, signal, { received: true, payload: early });
      return { status: turn.status, received: early };
    }
    const until = timeoutMs === null ? null : this.now + timeoutMs;
    return this.putBack(turn, { status: 'waiting', waitsFor: { signal, until } });
  }

  private putBack(turn: ModelTurn, change: Partial<ModelTurn>): unknown {
    if (this.mustEnd(turn)) this.stop(turn, turn.mark ?? 'cancel');
    else Object.assign(turn, change);
    this.runner = null;
    return { status: turn.status, received: null };
  }

  private signal({ turnId, signal, payload }: Operation<'signal'>): unknown {
    const turn = this.turns.find(({ id }) => id === turnId);
    if (!turn) return 'TURN_NOT_FOUND';
    if (turn.signals[signal] !== undefined) return { accepted: false };
    if (isTerminal(turn.status)) return 'TURN_SETTLED';
    turn.signals[signal] = payload;
    if (turn.waitsFor?.signal === signal) {
      store(turn, signal, { received: true, payload });
      Object.assign(turn, { status: 'queued', waitsFor: null });
    }
    return { accepted: true };
  }

  private cancel({ turnId, mode }: Operation<'cancel'>): unknown {
    const turn = this.turns.find(({ id }) => id === turnId);
    if (!turn) return 'TURN_NOT_FOUND';
    if (turn.status === 'queued' && !turn.begun) this.stop(turn, 'cancel');
    else if (!isTerminal(turn.status)) this.ask(turn, mode);
    return { status: turn.status, mark: turn.mark };
  }

  private control({ mode }: Operation<'control'>): unknown {
    if (this.session === null) return 'SESSION_NOT_FOUND';
    this.mode = mode;
    return { notify: mode !== 'paused' && this.isClaimable };
  }

  /** Cancels the queued and waiting turns. @returns how many */
  private cancelSuspended(): number {
    const suspended = this.open.filter(({ status }) => status !== 'running');
    for (const turn of suspended) this.stop(turn, 'cancel');
    return suspended.length;
  }

  private shown(): unknown {
    const { head, mode, queued, runner } = this;
    if (!head) return { mode, queued: 0, head: null };
    const { id, status, failures, lost } = head;
    return { mode, queued: queued.length, head: { id, status, failures, lost, worker: runner?.holder ?? null } };
  }

  private changeSession(change: 'create' | 'expire' | 'revoke' | 'delete' | 'erase'): unknown {
    const there = this.session !== null;
    if (change === 'create') {
      if (there || this.erased) return 'SESSION_CONFLICT';
      this.session = 'created';
      return null;
    }
    if (change === 'expire' || change === 'revoke') {
      if (!there) return 'SESSION_NOT_FOUND';
      this.session = 'expired';
      this.cancelSuspended();
      if (change === 'revoke' && this.head) this.ask(this.head, 'cancel');
      return null;
    }
    Object.assign(this, {
      ...new LaneModel(),
      now: this.now,
      session: null,
      erased: this.erased || change === 'erase',
    });
    return change === 'delete' ? there : null;
  }

  private get open(): ModelTurn[] {
    return this.turns.filter(({ status }) => !isTerminal(status));
  }

  private get head(): ModelTurn | undefined {
    return this.open[0];
  }

  private get queued(): ModelTurn[] {
    return this.open.filter(({ status }) => status === 'queued');
  }

  private get hasLapsed(): boolean {
    return this.runner !== null && this.runner.leaseUntil <= this.now;
  }

  private heldBy({ turnId, fence }: TurnHold): ModelTurn | undefined {
    const { head } = this;
    return head?.id === turnId && this.runner?.fence === fence ? head : undefined;
  }

  /** Returns whether the running attempt is the last one. */
  private mustEnd(turn: ModelTurn): boolean {
    return turn.mark !== null || this.session === 'expired';
  }

  /** Marks a running turn to stop; the first mark remains. A turn that has begun but does not run ends immediately. */
  private ask(turn: ModelTurn, mode: CancelMode): void {
    if (turn.status === 'running') turn.mark ??= mode;
    else this.stop(turn, mode);
  }

  private stop(turn: ModelTurn, mode: CancelMode): void {
    if (mode === 'interrupt') this.messages.push(turn.id);
    Object.assign(turn, { status: 'cancelled', mark: null, waitsFor: null, dueAt: null });
  }
}

type HoldersWrite = 'renew' | 'settle' | 'retry' | 'release' | 'wait' | 'saveStep';

function newTurn(id: string, position: number): ModelTurn {
  return {
    id,
    position,
    status: 'queued',
    begun: false,
    failures: 0,
    lost: 0,
    lostSinceStep: 0,
    mark: null,
    dueAt: null,
    waitsFor: null,
    signals: {},
    steps: {},
    settledWith: null,
  };
}

/** Stores a step, unless it exists. @returns the stored value */
function store(turn: ModelTurn, name: string, value: unknown): unknown {
  if (turn.steps[name] === undefined) turn.lostSinceStep = 0;
  turn.steps[name] ??= value;
  return turn.steps[name];
}

function shown({ id, position, status, failures, lost, mark, waitsFor, dueAt }: ModelTurn): unknown {
  return { id, position, status, failures, lost, mark, waitsFor: waitsFor?.signal ?? null, isDelayed: dueAt !== null };
}

function fenceIn(seen: unknown): number {
  return (seen as { readonly fence?: number } | null)?.fence ?? 0;
}
