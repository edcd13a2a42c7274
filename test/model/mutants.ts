import { type CancelMode, type WhenBusy } from 'nestjs-agent-sessions';
import { STUCK } from './explore.js';
import { type Answer, type Given, type Hold, isOpen, type LaneState, type ModelTurn, type Payload } from './lane.js';
import { type RuleName } from './lane-rules.js';
import { TransitionTable } from './transition-table.js';
import { type WORLDS } from './worlds.js';

export interface Mutant {
  /** The mistake. */
  readonly name: string;
  readonly table: TransitionTable;
  /** The world in which the mistake shows. */
  readonly world: keyof typeof WORLDS;
  /** The rule that must detect it. */
  readonly breaks: RuleName | typeof STUCK;
}

/** Tables with one mistake each. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'writes are accepted from every attempt of the running turn',
    breaks: 'TRN-03 a replaced or ended attempt changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override held({ runner, turns }: LaneState, { turn }: Hold): ModelTurn | undefined {
        return runner?.turn === turn ? turns[turn] : undefined;
      }
    })(),
  },
  {
    name: 'writes are accepted with the last fence, whichever worker runs',
    breaks: 'TRN-03 a replaced or ended attempt changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override held({ fence, turns }: LaneState, hold: Hold): ModelTurn | undefined {
        return fence === hold.fence ? turns[hold.turn] : undefined;
      }
    })(),
  },
  {
    name: 'a step is stored without a check of the fence',
    breaks: 'TRN-03 a replaced or ended attempt changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override saveStep({ turns }: LaneState, { turn }: Hold): Answer {
        turns[turn].step = true;
        return { stored: true };
      }
    })(),
  },
  {
    name: 'a claim does not check the lease',
    breaks: 'TRN-03 no worker loses the lane during its lease',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override hasLapsed(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a take-over keeps the fence',
    breaks: 'TRN-03 every claim gets a higher fence',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override nextFence({ runner, fence }: LaneState): number {
        return runner ? fence : fence + 1;
      }
    })(),
  },
  {
    name: 'a repeated claim finds the lane held',
    breaks: 'TRN-05 a repeated call gets the same answer',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override isSameClaim(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a repeated settle is rejected',
    breaks: 'TRN-05 a repeated call gets the same answer',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override isSameSettle(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a repeated turn is accepted again',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its position',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override known(): undefined {
        return undefined;
      }
    })(),
  },
  {
    name: 'a position is used again',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its position',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override nextPosition({ turns }: LaneState): number {
        return turns.filter(isOpen).length + 1;
      }
    })(),
  },
  {
    name: 'a retry goes to the back of the lane',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its position',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override retry(lane: LaneState, hold: Hold): Answer {
        const answer = super.retry(lane, hold);
        if (answer !== 'TURN_FENCED') lane.turns[hold.turn].position = this.nextPosition(lane);
        return answer;
      }

      protected override head({ turns }: LaneState): ModelTurn | undefined {
        return turns.filter(isOpen).sort((a, b) => a.position - b.position)[0];
      }
    })(),
  },
  {
    name: 'a delayed turn is overtaken',
    breaks: 'TRN-02 no turn overtakes another',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override head(lane: LaneState): ModelTurn | undefined {
        return (
          lane.turns.find(
            (turn) => isOpen(turn) && turn.status !== 'waiting' && (turn.due || turn.status === 'running'),
          ) ?? super.head(lane)
        );
      }
    })(),
  },
  {
    name: 'a waiting turn frees the lane',
    breaks: 'TRN-02 no turn overtakes another',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override head(lane: LaneState): ModelTurn | undefined {
        return lane.turns.find((turn) => isOpen(turn) && turn.status !== 'waiting') ?? super.head(lane);
      }
    })(),
  },
  {
    name: 'a delay or a wait ends immediately',
    breaks: 'TRN-08 TRN-13 nothing runs before its time',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override isDue(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a cancel also ends settled turns',
    breaks: 'TRN-01 a settled turn never changes',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override cancel(lane: LaneState, turn: ModelTurn, mode: CancelMode): Answer {
        if (isOpen(turn)) return super.cancel(lane, turn, mode);
        this.end(turn, 'cancelled');
        return { status: turn.status, mark: null, notify: false };
      }
    })(),
  },
  {
    name: 'a cancel ends the running turn',
    breaks: 'TRN-03 at most one attempt of one turn runs',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        this.stop(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'the last mark replaces the first',
    breaks: 'TRN-06 a turn that was asked to stop gets no further attempt',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        if (turn.status === 'running') turn.mark = mode;
        else super.ask(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'a turn that was asked to stop is retried',
    breaks: 'TRN-06 a turn that was asked to stop gets no further attempt',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override mustEnd({ expired }: LaneState): CancelMode | null {
        return expired ? 'cancel' : null;
      }
    })(),
  },
  {
    name: 'a turn of an expired session is retried',
    breaks: 'TRN-01 nothing starts in a session that has expired',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override mustEnd(_: LaneState, { mark }: ModelTurn): CancelMode | null {
        return mark;
      }
    })(),
  },
  {
    name: 'a session that expires keeps its queued turns',
    breaks: 'TRN-01 nothing starts in a session that has expired',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override expire(lane: LaneState): Answer {
        lane.expired = true;
        return null;
      }
    })(),
  },
  {
    name: 'an interrupt that no worker settles loses the message of the user',
    breaks: 'TRN-06 the message of the user is stored once if the turn succeeds or is interrupted, otherwise never',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override stop(_: LaneState, turn: ModelTurn): void {
        this.end(turn, 'cancelled');
      }
    })(),
  },
  {
    name: 'a rollback stores the message of the user',
    breaks: 'TRN-06 the message of the user is stored once if the turn succeeds or is interrupted, otherwise never',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override stop(lane: LaneState, turn: ModelTurn): void {
        super.stop(lane, turn, 'interrupt');
      }
    })(),
  },
  {
    name: 'an interrupt stores the message on the request and again on the settle',
    breaks: 'TRN-06 the message of the user is stored once if the turn succeeds or is interrupted, otherwise never',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        if (turn.status === 'running' && mode === 'interrupt') lane.messages.push(lane.turns.indexOf(turn));
        super.ask(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'a policy supersedes the running turn',
    breaks: 'TRN-01 a turn changes its status only as the table allows',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede(lane: LaneState): void {
        for (const turn of lane.turns.filter(isOpen)) this.end(turn, 'superseded');
      }
    })(),
  },
  {
    name: 'a policy supersedes a turn that is queued again',
    breaks: 'TRN-06 a message handles other turns as its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede({ turns }: LaneState): void {
        for (const turn of turns) if (turn.status === 'queued') this.end(turn, 'superseded');
      }
    })(),
  },
  {
    name: 'a policy ignores a turn that is queued again',
    breaks: 'TRN-06 a message handles other turns as its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        if (turn.status !== 'queued') super.ask(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'a turn that is queued again does not hold its lane',
    breaks: 'TRN-06 a turn holds its lane from its first claim until it ends',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override putBack(lane: LaneState, hold: Hold, change: (turn: ModelTurn) => void): Answer {
        return super.putBack(lane, hold, (turn) => {
          change(turn);
          turn.begun = false;
        });
      }
    })(),
  },
  {
    name: 'a policy supersedes nothing',
    breaks: 'TRN-06 a message handles other turns as its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede(): void {}
    })(),
  },
  {
    name: 'a busy lane rejects nothing',
    breaks: 'TRN-06 a message handles other turns as its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override accept(lane: LaneState, turn: number, whenBusy: WhenBusy): Answer {
        return super.accept(lane, turn, whenBusy === 'reject' ? 'enqueue' : whenBusy);
      }
    })(),
  },
  {
    name: 'a loss does not count',
    breaks: 'FIX-06 exactly each lost attempt is counted once',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override countLoss(): void {}
    })(),
  },
  {
    name: 'a loss counts as a failure',
    breaks: 'TRN-08 exactly each failure is counted once',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override countLoss(turn: ModelTurn): void {
        super.countLoss(turn);
        turn.failures += 1;
      }
    })(),
  },
  {
    name: 'a release counts',
    breaks: 'TRN-08 exactly each failure is counted once',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override release(lane: LaneState, hold: Hold): Answer {
        return this.retry(lane, hold);
      }
    })(),
  },
  {
    name: 'a turn may be lost any number of times',
    breaks: 'FIX-62 a turn is lost at most the maximum number of times without a new step',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override leavesAfterLoss(lane: LaneState, turn: ModelTurn): boolean {
        return super.leavesAfterLoss({ ...lane, maxLost: Infinity }, turn);
      }
    })(),
  },
  {
    name: 'a stored step is no progress',
    breaks: 'FIX-62 exactly a new step resets the losses that fail a turn',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override progress(): void {}
    })(),
  },
  {
    name: 'every claim accepts suspects',
    breaks: 'FIX-06 a turn that was lost twice runs only for a claim that accepts suspects',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override claim(lane: LaneState, claim: number): Given | null {
        return super.claim(lane, claim, true);
      }
    })(),
  },
  {
    name: 'a suspect runs again immediately',
    breaks: 'FIX-06 a turn that was lost twice runs only for a claim that accepts suspects',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override leavesAfterLoss(lane: LaneState, turn: ModelTurn): boolean {
        const leaves = super.leavesAfterLoss(lane, turn);
        if (turn.status !== 'queued') return leaves;
        turn.status = 'running';
        return false;
      }
    })(),
  },
  {
    name: 'a turn is suspect from its first loss on',
    breaks: 'FIX-06 a first loss causes no delay',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override isSuspect({ lost }: ModelTurn): boolean {
        return lost > 0;
      }
    })(),
  },
  {
    name: 'a waiting suspect is never offered',
    breaks: STUCK,
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override rest(lane: LaneState): boolean {
        const notify = super.rest(lane);
        const head = this.head(lane);
        if (head && this.isSuspect(head)) lane.attention = false;
        return notify;
      }
    })(),
  },
  {
    name: 'a later signal replaces the first',
    breaks: 'TRN-13 the first signal applies, even if it is early',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override isFirst(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'an early signal is lost',
    breaks: 'TRN-13 the first signal applies, even if it is early',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override signal(lane: LaneState, turn: ModelTurn, payload: Payload): Answer {
        return turn.status === 'queued' ? { accepted: true, notify: false } : super.signal(lane, turn, payload);
      }
    })(),
  },
  {
    name: 'a wait does not check for an early signal',
    breaks: 'TRN-13 the first signal applies, even if it is early',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override hasEarlySignal(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a signal queues the running turn again',
    breaks: 'TRN-03 at most one attempt of one turn runs',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override signal(lane: LaneState, turn: ModelTurn, payload: Payload): Answer {
        const answer = super.signal(lane, turn, payload);
        if (turn.status === 'running') turn.status = 'queued';
        return answer;
      }
    })(),
  },
  {
    name: 'a timed-out wait stores no result',
    breaks: 'TRN-13 a wait has one result: the signal or the time-out',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override conclude(turn: ModelTurn, answer: ModelTurn['answer']): void {
        if (answer !== 'timed out') super.conclude(turn, answer);
      }
    })(),
  },
  {
    name: 'the next attempt does not receive the stored steps',
    breaks: 'TRN-15 an attempt receives all data stored before it',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override given(lane: LaneState, turn: ModelTurn): Given {
        return { ...super.given(lane, turn), step: false };
      }
    })(),
  },
  {
    name: 'a success writes no checkpoint',
    breaks: 'BOT-20 every success writes one checkpoint, in the order of the lane',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override append(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a claim receives the index of the last checkpoint',
    breaks: 'BOT-20 every success writes one checkpoint, in the order of the lane',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override given(lane: LaneState, turn: ModelTurn): Given {
        return { ...super.given(lane, turn), index: Math.max(lane.checkpoints.length - 1, 0) };
      }
    })(),
  },
  {
    name: 'a settled turn does not free its lane',
    breaks: 'TRN-03 at most one attempt of one turn runs',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override rest(lane: LaneState): boolean {
        lane.attention = this.head(lane) !== undefined;
        return lane.attention;
      }
    })(),
  },
  {
    name: 'a lane with a delayed head is never offered',
    breaks: STUCK,
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override rest(lane: LaneState): boolean {
        lane.attention = super.rest(lane);
        return lane.attention;
      }
    })(),
  },
  {
    name: 'a running lane is never offered',
    breaks: STUCK,
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override give(lane: LaneState, turn: ModelTurn, claim: number): Given {
        const given = super.give(lane, turn, claim);
        lane.attention = false;
        return given;
      }
    })(),
  },
  {
    name: 'a lease does not lapse',
    breaks: 'FIX-06 a first loss causes no delay',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override hasLapsed(): boolean {
        return false;
      }
    })(),
  },
];
