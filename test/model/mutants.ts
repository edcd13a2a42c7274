import { type CancelMode, type WhenBusy } from 'nestjs-agent-sessions';
import { STUCK } from './explore.js';
import { type Answer, type Given, type Hold, isOpen, type LaneState, type ModelTurn, type Payload } from './lane.js';
import { type RuleName } from './lane-rules.js';
import { TransitionTable } from './transition-table.js';
import { type WORLDS } from './worlds.js';

export interface Mutant {
  /** What is wrong with it. */
  readonly name: string;
  readonly table: TransitionTable;
  /** Where it is found. */
  readonly world: keyof typeof WORLDS;
  /** The rule that must find it. */
  readonly breaks: RuleName | typeof STUCK;
}

/** Tables with one mistake each. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'writes are taken from every attempt of the turn that runs',
    breaks: 'TRN-03 an attempt that was replaced or has ended changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override held({ runner, turns }: LaneState, { turn }: Hold): ModelTurn | undefined {
        return runner?.turn === turn ? turns[turn] : undefined;
      }
    })(),
  },
  {
    name: 'writes are taken with the last fence, whoever runs',
    breaks: 'TRN-03 an attempt that was replaced or has ended changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override held({ fence, turns }: LaneState, hold: Hold): ModelTurn | undefined {
        return fence === hold.fence ? turns[hold.turn] : undefined;
      }
    })(),
  },
  {
    name: 'a step is stored without a look at the fence',
    breaks: 'TRN-03 an attempt that was replaced or has ended changes nothing',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override saveStep({ turns }: LaneState, { turn }: Hold): Answer {
        turns[turn].step = true;
        return { stored: true };
      }
    })(),
  },
  {
    name: 'a claim does not look at the lease',
    breaks: 'TRN-03 nobody loses the lane while the lease lasts',
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
    name: 'a claim that is sent again finds the lane taken',
    breaks: 'TRN-05 a call sent twice is answered as if sent once',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override isSameClaim(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a settle that is sent again is refused',
    breaks: 'TRN-05 a call sent twice is answered as if sent once',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override isSameSettle(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a turn that is sent again is accepted again',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its place',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override known(): undefined {
        return undefined;
      }
    })(),
  },
  {
    name: 'a position is used again',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its place',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override nextPosition({ turns }: LaneState): number {
        return turns.filter(isOpen).length + 1;
      }
    })(),
  },
  {
    name: 'a retry goes to the back of the lane',
    breaks: 'TRN-02 a turn is accepted once, behind all others, and keeps its place',
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
    name: 'a turn that is put off is overtaken',
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
    name: 'a turn that waits gives the lane away',
    breaks: 'TRN-02 no turn overtakes another',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override head(lane: LaneState): ModelTurn | undefined {
        return lane.turns.find((turn) => isOpen(turn) && turn.status !== 'waiting') ?? super.head(lane);
      }
    })(),
  },
  {
    name: 'a delay or a wait is over at once',
    breaks: 'TRN-08 TRN-13 nothing runs before its time',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override isDue(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a cancel ends what is over as well',
    breaks: 'TRN-01 a turn that is over stays as it is',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override cancel(lane: LaneState, turn: ModelTurn, mode: CancelMode): Answer {
        if (isOpen(turn)) return super.cancel(lane, turn, mode);
        this.end(turn, 'cancelled');
        return { status: turn.status, mark: null, ring: false };
      }
    })(),
  },
  {
    name: 'a cancel ends the turn that runs',
    breaks: 'TRN-03 one turn runs, for one attempt',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        this.stop(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'the last mark stays',
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
    name: 'a turn that was asked to stop is tried again',
    breaks: 'TRN-06 a turn that was asked to stop gets no further attempt',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override mustEnd({ expired }: LaneState): CancelMode | null {
        return expired ? 'cancel' : null;
      }
    })(),
  },
  {
    name: 'a turn of a session that has expired is tried again',
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
    name: 'an interrupt that no worker settles loses what the user said',
    breaks: 'TRN-06 what the user said is kept once when the turn succeeds or is interrupted, else not',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override stop(_: LaneState, turn: ModelTurn): void {
        this.end(turn, 'cancelled');
      }
    })(),
  },
  {
    name: 'a rollback keeps what the user said',
    breaks: 'TRN-06 what the user said is kept once when the turn succeeds or is interrupted, else not',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override stop(lane: LaneState, turn: ModelTurn): void {
        super.stop(lane, turn, 'interrupt');
      }
    })(),
  },
  {
    name: 'an interrupt is kept when it is asked for, and again when it is settled',
    breaks: 'TRN-06 what the user said is kept once when the turn succeeds or is interrupted, else not',
    world: 'cancels',
    table: new (class extends TransitionTable {
      protected override ask(lane: LaneState, turn: ModelTurn, mode: CancelMode): void {
        if (turn.status === 'running' && mode === 'interrupt') lane.messages.push(lane.turns.indexOf(turn));
        super.ask(lane, turn, mode);
      }
    })(),
  },
  {
    name: 'a policy supersedes the turn that runs',
    breaks: 'TRN-01 a turn goes only where the table leads',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede(lane: LaneState): void {
        for (const turn of lane.turns.filter(isOpen)) this.end(turn, 'superseded');
      }
    })(),
  },
  {
    name: 'a policy supersedes a turn that is queued again',
    breaks: 'TRN-06 a message does to the others what its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede({ turns }: LaneState): void {
        for (const turn of turns) if (turn.status === 'queued') this.end(turn, 'superseded');
      }
    })(),
  },
  {
    name: 'a policy leaves a turn that is queued again',
    breaks: 'TRN-06 a message does to the others what its policy says',
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
    breaks: 'TRN-06 a message does to the others what its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override supersede(): void {}
    })(),
  },
  {
    name: 'a busy lane rejects nothing',
    breaks: 'TRN-06 a message does to the others what its policy says',
    world: 'policies',
    table: new (class extends TransitionTable {
      protected override accept(lane: LaneState, turn: number, whenBusy: WhenBusy): Answer {
        return super.accept(lane, turn, whenBusy === 'reject' ? 'enqueue' : whenBusy);
      }
    })(),
  },
  {
    name: 'a loss does not count',
    breaks: 'FIX-06 a lost attempt counts once, and nothing else does',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override countLoss(): void {}
    })(),
  },
  {
    name: 'a loss counts as a failure',
    breaks: 'TRN-08 a failure counts once, and nothing else does',
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
    breaks: 'TRN-08 a failure counts once, and nothing else does',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override release(lane: LaneState, hold: Hold): Answer {
        return this.retry(lane, hold);
      }
    })(),
  },
  {
    name: 'a turn may be lost without end',
    breaks: 'FIX-06 a turn is lost no more often than it may',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override leavesAfterLoss(lane: LaneState, turn: ModelTurn): boolean {
        return super.leavesAfterLoss({ ...lane, maxLost: Infinity }, turn);
      }
    })(),
  },
  {
    name: 'every claim takes suspects',
    breaks: 'FIX-06 a turn that was lost twice runs for a claim that takes suspects',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override claim(lane: LaneState, claim: number): Given | null {
        return super.claim(lane, claim, true);
      }
    })(),
  },
  {
    name: 'a suspect runs again at once',
    breaks: 'FIX-06 a turn that was lost twice runs for a claim that takes suspects',
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
    name: 'a turn is a suspect from its first loss on',
    breaks: 'FIX-06 a first loss puts nothing off',
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override isSuspect({ lost }: ModelTurn): boolean {
        return lost > 0;
      }
    })(),
  },
  {
    name: 'a suspect that waits for a worker is forgotten',
    breaks: STUCK,
    world: 'losses',
    table: new (class extends TransitionTable {
      protected override rest(lane: LaneState): boolean {
        const ring = super.rest(lane);
        const head = this.head(lane);
        if (head && this.isSuspect(head)) lane.attention = false;
        return ring;
      }
    })(),
  },
  {
    name: 'a later signal counts',
    breaks: 'TRN-13 the first signal counts, also an early one',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override isFirst(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a signal that comes early is lost',
    breaks: 'TRN-13 the first signal counts, also an early one',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override signal(lane: LaneState, turn: ModelTurn, payload: Payload): Answer {
        return turn.status === 'queued' ? { accepted: true, ring: false } : super.signal(lane, turn, payload);
      }
    })(),
  },
  {
    name: 'a wait does not look for an early signal',
    breaks: 'TRN-13 the first signal counts, also an early one',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override hasEarlySignal(): boolean {
        return false;
      }
    })(),
  },
  {
    name: 'a signal puts the turn that runs back into the lane',
    breaks: 'TRN-03 one turn runs, for one attempt',
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
    name: 'a wait that times out leaves no result',
    breaks: 'TRN-13 a wait has one result: the signal, or that it timed out',
    world: 'waits',
    table: new (class extends TransitionTable {
      protected override conclude(turn: ModelTurn, answer: ModelTurn['answer']): void {
        if (answer !== 'timed out') super.conclude(turn, answer);
      }
    })(),
  },
  {
    name: 'the next attempt is not given the stored steps',
    breaks: 'TRN-15 an attempt knows what was stored before it',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override given(lane: LaneState, turn: ModelTurn): Given {
        return { ...super.given(lane, turn), step: false };
      }
    })(),
  },
  {
    name: 'a success writes no checkpoint',
    breaks: 'BOT-20 every success wrote one checkpoint, in the order of the lane',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override append(): boolean {
        return true;
      }
    })(),
  },
  {
    name: 'a claim is given the index of the last checkpoint',
    breaks: 'BOT-20 every success wrote one checkpoint, in the order of the lane',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override given(lane: LaneState, turn: ModelTurn): Given {
        return { ...super.given(lane, turn), index: Math.max(lane.checkpoints.length - 1, 0) };
      }
    })(),
  },
  {
    name: 'a settled turn does not free its lane',
    breaks: 'TRN-03 one turn runs, for one attempt',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override rest(lane: LaneState): boolean {
        lane.attention = this.head(lane) !== undefined;
        return lane.attention;
      }
    })(),
  },
  {
    name: 'nobody is to look at a lane whose head is put off',
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
    name: 'nobody is to look at a lane that runs',
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
    breaks: 'FIX-06 a first loss puts nothing off',
    world: 'crashes',
    table: new (class extends TransitionTable {
      protected override hasLapsed(): boolean {
        return false;
      }
    })(),
  },
];
