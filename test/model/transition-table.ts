import { type CancelMode, type WhenBusy } from 'nestjs-agent-sessions';
import {
  type Answer,
  type Given,
  type Hold,
  holdsLane,
  isOpen,
  type LaneAction,
  type LaneState,
  type ModelTurn,
  type Payload,
  POLICIES,
  type Settlement,
  SUSPECT_FROM_LOST,
} from './lane.js';

/**
 * The transition table in the documentation of TurnLedger: the effect of each call on a lane. Changes the state in
 * place; the caller reverts changes before a rejection. One method is one rule, so that a mutant breaks one rule.
 */
export class TransitionTable {
  apply(lane: LaneState, action: LaneAction): Answer {
    switch (action.type) {
      case 'accept':
        return this.accept(lane, action.turn, action.whenBusy);
      case 'claim':
        return this.claim(lane, action.claim, action.suspects);
      case 'renew':
        return this.renew(lane, action.hold);
      case 'settle':
        return this.settle(lane, action.hold, action);
      case 'retry':
        return this.retry(lane, action.hold);
      case 'release':
        return this.release(lane, action.hold);
      case 'wait':
        return this.wait(lane, action.hold);
      case 'saveStep':
        return this.saveStep(lane, action.hold);
      case 'signal':
        return this.signal(lane, lane.turns[action.turn], action.payload);
      case 'cancel':
        return this.cancel(lane, lane.turns[action.turn], action.mode);
      case 'expire':
        return this.expire(lane);
      case 'time':
        return this.time(lane);
    }
  }

  protected accept(lane: LaneState, number: number, whenBusy: WhenBusy): Answer {
    const known = this.known(lane, number);
    if (known) return { position: known.position, duplicate: true, notify: known.status === 'queued' };
    if (lane.expired) return 'SESSION_STATE';
    const head = this.head(lane);
    if (head && whenBusy === 'reject') return 'SESSION_BUSY';

    const { stops, supersedes } = POLICIES[whenBusy];
    if (supersedes) this.supersede(lane);
    if (stops && head && holdsLane(head)) this.ask(lane, head, stops);
    const position = this.nextPosition(lane);
    lane.turns.push(newTurn(position));
    const getsHead = lane.runner === null && this.head(lane) !== head;
    return { position, duplicate: false, notify: getsHead && this.rest(lane) };
  }

  protected claim(lane: LaneState, claim: number, suspects = false): Given | null {
    for (let head = this.head(lane); head; head = this.head(lane)) {
      if (head.status === 'running') {
        // A repeated claim gets the same answer.
        if (this.isSameClaim(lane, claim) && !this.hasLapsed(lane)) return this.given(lane, head);
        if (!this.hasLapsed(lane)) return null;
        if (!this.leavesAfterLoss(lane, head)) return this.give(lane, head, claim);
        this.rest(lane);
      } else {
        if (!this.isDue(head) || (this.isSuspect(head) && !suspects)) return null;
        if (head.status === 'waiting') this.conclude(head, 'timed out');
        return this.give(lane, head, claim);
      }
    }
    return null;
  }

  protected renew(lane: LaneState, hold: Hold): Answer {
    const turn = this.held(lane, hold);
    if (!turn || !lane.runner) return 'TURN_FENCED';
    lane.runner.lapsed = false;
    lane.attention = true;
    return { mark: turn.mark };
  }

  protected settle(lane: LaneState, hold: Hold, { status, index, message, next }: Settlement): Answer {
    const settled = lane.turns[hold.turn];
    // A repeated settle: the first one applies, and the next turn can still be claimed.
    if (!this.isSameSettle(settled, hold)) {
      const turn = this.held(lane, hold);
      if (!turn) return 'TURN_FENCED';
      if (index !== null && !this.append(lane, hold.turn, index)) return 'CHECKPOINT_CONFLICT';
      if (message) lane.messages.push(hold.turn);
      if (status === 'failed') turn.failures += 1;
      this.end(turn, status);
      turn.settledBy = hold.fence;
      this.rest(lane);
    }
    const given = next === null ? null : this.claim(lane, next);
    const head = this.head(lane);
    const notify = !given && lane.runner === null && head !== undefined && this.isDue(head);
    return { status: settled.status, next: given, notify };
  }

  protected retry(lane: LaneState, hold: Hold): Answer {
    return this.putBack(lane, hold, (turn) => {
      turn.status = 'queued';
      turn.failures += 1;
      this.putOff(turn);
    });
  }

  protected release(lane: LaneState, hold: Hold): Answer {
    return this.putBack(lane, hold, (turn) => {
      turn.status = 'queued';
      turn.due = true;
    });
  }

  protected wait(lane: LaneState, hold: Hold): Answer {
    const turn = this.held(lane, hold);
    if (!turn) return 'TURN_FENCED';
    if (this.hasEarlySignal(turn)) {
      this.conclude(turn, turn.signal);
      return { status: turn.status, received: turn.signal };
    }
    return this.putBack(lane, hold, (turn) => {
      turn.status = 'waiting';
      this.putOff(turn);
    });
  }

  protected saveStep(lane: LaneState, hold: Hold): Answer {
    const turn = this.held(lane, hold);
    if (!turn) return 'TURN_FENCED';
    if (!turn.step) this.progress(turn);
    turn.step = true;
    return { stored: true };
  }

  protected signal(lane: LaneState, turn: ModelTurn, payload: Payload): Answer {
    if (!this.isFirst(turn)) return { accepted: false, notify: false };
    if (!isOpen(turn)) return 'TURN_SETTLED';
    turn.signal = payload;
    if (turn.status !== 'waiting') return { accepted: true, notify: false };
    this.conclude(turn, payload);
    turn.status = 'queued';
    turn.due = true;
    return { accepted: true, notify: this.rest(lane) };
  }

  protected cancel(lane: LaneState, turn: ModelTurn, mode: CancelMode): Answer {
    const wasHead = this.head(lane) === turn;
    const ran = turn.status === 'running';
    if (turn.status === 'queued' && !turn.begun) this.end(turn, 'cancelled');
    else if (isOpen(turn)) this.ask(lane, turn, mode);
    return { status: turn.status, mark: turn.mark, notify: wasHead && !ran && this.rest(lane) };
  }

  protected expire(lane: LaneState): Answer {
    lane.expired = true;
    for (const turn of lane.turns) if (isOpen(turn) && turn.status !== 'running') this.end(turn, 'cancelled');
    if (lane.runner === null) this.rest(lane);
    return null;
  }

  protected time(lane: LaneState): Answer {
    const head = this.head(lane);
    if (lane.runner) lane.runner.lapsed = true;
    else if (head) head.due = true;
    return null;
  }

  protected known(lane: LaneState, number: number): ModelTurn | undefined {
    return lane.turns.at(number);
  }

  protected nextPosition(lane: LaneState): number {
    return lane.turns.length + 1;
  }

  protected head(lane: LaneState): ModelTurn | undefined {
    return lane.turns.find(isOpen);
  }

  protected isDue(head: ModelTurn): boolean {
    return head.due;
  }

  protected hasLapsed(lane: LaneState): boolean {
    return lane.runner?.lapsed ?? false;
  }

  /** Returns the turn of a hold if it is the lane's current one. */
  protected held(lane: LaneState, { turn, fence }: Hold): ModelTurn | undefined {
    return lane.runner?.turn === turn && lane.fence === fence ? lane.turns[turn] : undefined;
  }

  protected isSameClaim({ runner }: LaneState, claim: number): boolean {
    return runner?.claim === claim;
  }

  protected isSameSettle({ settledBy }: ModelTurn, { fence }: Hold): boolean {
    return settledBy === fence;
  }

  protected nextFence(lane: LaneState): number {
    return lane.fence + 1;
  }

  protected give(lane: LaneState, turn: ModelTurn, claim: number): Given {
    turn.status = 'running';
    turn.begun = true;
    turn.due = false;
    lane.fence = this.nextFence(lane);
    lane.runner = { turn: lane.turns.indexOf(turn), claim, lapsed: false };
    lane.attention = true;
    return this.given(lane, turn);
  }

  protected given(lane: LaneState, turn: ModelTurn): Given {
    const { failures, lost, step, answer } = turn;
    return {
      turn: lane.turns.indexOf(turn),
      fence: lane.fence,
      failures,
      lost,
      index: lane.checkpoints.length,
      step,
      answer,
    };
  }

  /** Handles a head whose worker was lost. @returns false if it runs again immediately */
  protected leavesAfterLoss(lane: LaneState, turn: ModelTurn): boolean {
    const mode = this.mustEnd(lane, turn);
    if (mode) {
      this.stop(lane, turn, mode);
      return true;
    }
    this.countLoss(turn);
    if (turn.lostSinceStep >= lane.maxLost || turn.lost >= 10 * lane.maxLost) {
      this.end(turn, 'failed');
      return true;
    }
    if (!this.isSuspect(turn)) return false;
    turn.status = 'queued';
    this.putOff(turn);
    return true;
  }

  protected countLoss(turn: ModelTurn): void {
    turn.lost += 1;
    turn.lostSinceStep += 1;
  }

  /** A new step is stored. */
  protected progress(turn: ModelTurn): void {
    turn.lostSinceStep = 0;
  }

  protected isSuspect({ lost }: ModelTurn): boolean {
    return lost >= SUSPECT_FROM_LOST;
  }

  /** Delays the turn, or starts its wait. */
  protected putOff(turn: ModelTurn): void {
    turn.due = false;
  }

  /** Ends the hold and queues the turn again with a change, unless it gets no further attempt. */
  protected putBack(lane: LaneState, hold: Hold, change: (turn: ModelTurn) => void): Answer {
    const turn = this.held(lane, hold);
    if (!turn) return 'TURN_FENCED';
    const mode = this.mustEnd(lane, turn);
    if (mode) this.stop(lane, turn, mode);
    else change(turn);
    this.rest(lane);
    return { status: turn.status, received: null };
  }

  /** Returns how a turn must end after its attempt instead of getting another one. */
  protected mustEnd(lane: LaneState, turn: ModelTurn): CancelMode | null {
    return turn.mark ?? (lane.expired ? 'cancel' : null);
  }

  /** Asks the holder of the lane to stop. A holder that does not run ends immediately. */
  protected ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
    if (turn.status === 'running') turn.mark ??= mode;
    else this.stop(lane, turn, mode);
  }

  /** Ends a turn that no worker settles. */
  protected stop(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
    if (mode === 'interrupt') lane.messages.push(lane.turns.indexOf(turn));
    this.end(turn, 'cancelled');
  }

  protected supersede(lane: LaneState): void {
    for (const turn of lane.turns) if (isOpen(turn) && !turn.begun) this.end(turn, 'superseded');
  }

  protected end(turn: ModelTurn, status: ModelTurn['status']): void {
    turn.status = status;
    turn.mark = null;
  }

  protected isFirst(turn: ModelTurn): boolean {
    return turn.signal === null;
  }

  protected hasEarlySignal(turn: ModelTurn): boolean {
    return turn.signal !== null;
  }

  /** Stores the result of a wait; the first result remains. */
  protected conclude(turn: ModelTurn, answer: ModelTurn['answer']): void {
    if (turn.answer === null) this.progress(turn);
    turn.answer ??= answer;
  }

  /** @returns false if the checkpoint is not the next one */
  protected append(lane: LaneState, turn: number, index: number): boolean {
    if (index !== lane.checkpoints.length) return false;
    lane.checkpoints.push(turn);
    return true;
  }

  /** Frees the lane. @returns true if its head is due and workers must be notified */
  protected rest(lane: LaneState): boolean {
    const head = this.head(lane);
    lane.runner = null;
    lane.attention = head !== undefined;
    return head !== undefined && this.isDue(head);
  }
}

function newTurn(position: number): ModelTurn {
  return {
    position,
    status: 'queued',
    begun: false,
    failures: 0,
    lost: 0,
    lostSinceStep: 0,
    mark: null,
    due: true,
    signal: null,
    answer: null,
    step: false,
    settledBy: null,
    asked: null,
    acknowledged: false,
  };
}
