import { type CancelMode, type WhenBusy } from 'nestjs-agent-sessions';
import { TOOLS } from '../../actor/plan.js';
import { type Claim, type OperationName, type Operations, stepOfCall } from '../../history/history.js';
import { Random } from '../../random.js';
import { heldBy, type SentCall, SimulatedRun, Unanswered } from './simulated-run.js';
import { LEASE_US, Refused } from './simulated-store.js';
import { type Recorded } from './scripted-run.js';

const SESSIONS = ['s1', 's2', 's3'];
const WORKERS = 3;
const CLIENTS = 3;
const MESSAGES = 12;
/** The time limit, ten times the usual duration of a run. */
const LIMIT_US = 600_000_000;
const WHEN_BUSY: readonly WhenBusy[] = ['enqueue', 'enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'];
const CANCEL_MODES: readonly CancelMode[] = ['cancel', 'interrupt', 'rollback'];

/** The actions of a process: it sleeps, or sends a call and continues with the answer. */
type Act = { readonly sleepUs: number } | { readonly op: OperationName; readonly args: unknown };
type Program<Result = void> = Generator<Act, Result, unknown>;

/** Returns a random run. Processes may be killed or frozen at any time, and answers may be lost. */
export function runAtRandom(seed: number): Recorded {
  return new RandomRun(seed).record();
}

class RandomRun {
  private readonly run = new SimulatedRun();
  /** Pending events by time. */
  private readonly agenda: { readonly at: number; readonly happen: () => void }[] = [];
  private readonly turnIds: string[] = [];
  private readonly working = new Set<Life>();
  private speaking = CLIENTS;
  private readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  record(): Recorded {
    for (let worker = 1; worker <= WORKERS; worker += 1) this.startWorker(`worker-${worker}`, 1);
    for (let client = 1; client <= CLIENTS; client += 1) {
      this.start(`client-${client}`, (name) => this.speak(name));
    }
    this.later(this.int(10_000, 500_000), () => this.harm());
    while (!this.isOver()) {
      const next = this.agenda.shift();
      if (!next || next.at > LIMIT_US) throw new Error('The run does not end.');
      this.run.now = next.at;
      next.happen();
    }
    return this.run.finish();
  }

  private isOver(): boolean {
    return this.speaking === 0 && this.run.store.isIdle();
  }

  private *speak(name: string): Program {
    for (let message = 1; message <= MESSAGES; message += 1) {
      const args = {
        sessionId: this.random.pick(SESSIONS),
        key: `${name}-${message}`,
        whenBusy: this.random.pick(WHEN_BUSY),
      };
      const submitted = yield* this.resent('submit', args);
      if (submitted) {
        const { turnId } = submitted;
        this.turnIds.push(turnId);
        if (this.random.chance(0.4)) this.start(`reader-${name}-${message}`, (reader) => this.read(reader, turnId));
        if (this.random.chance(0.2)) yield* this.sent('cancel', { turnId, mode: this.random.pick(CANCEL_MODES) });
        if (this.random.chance(0.3)) yield* this.resent('submit', args);
        yield* this.sent('result', { turnId });
      }
      const turnId = this.turnIds[this.int(0, this.turnIds.length)];
      if (turnId !== undefined) yield* this.sent('result', { turnId });
      yield { sleepUs: this.int(1000, 300_000) };
    }
    this.speaking -= 1;
  }

  private *read(name: string, turnId: string): Program {
    for (let offset = 0; ;) {
      const event = this.run.store.read(turnId, offset);
      if (event) {
        this.run.note(name, { what: 'event', turnId, reader: name, ...event });
        offset = event.offset;
        if (event.name === 'settled') return;
      }
      yield { sleepUs: this.int(100, 50_000) };
    }
  }

  private *work(name: string): Program {
    for (;;) {
      let claim = yield* this.sent('claim', { sessionId: this.random.pick(SESSIONS) });
      while (claim) claim = yield* this.attempt(name, claim, this.run.now + LEASE_US / 2);
      yield { sleepUs: this.int(1000, 100_000) };
    }
  }

  /** @returns the turn that the settle hands over */
  private *attempt(name: string, claim: Claim, leaseEnd: number): Program<Claim | null> {
    const { sessionId, turnId, failures, lost, position } = claim;
    const hold = heldBy(claim);
    const attempt = this.run.nextAttempt(name);
    const tokens = this.run.store.tokensBefore(turnId);
    this.run.note(name, { what: 'begin', sessionId, turnId, attempt, number: failures + lost + 1, tokens });
    const over = (what: 'abort' | 'end'): void => this.run.note(name, { what, turnId, attempt });
    let number = 0;
    for (const step of ['look up', 'pay out'].filter((one) => !claim.steps.includes(one))) {
      this.run.note(name, { what: 'step', turnId, attempt, step });
      yield { sleepUs: this.int(0, 20_000) };
      const saved = yield* this.insisted('saveStep', { ...hold, step, value: attempt }, leaseEnd);
      number += 1;
      const stored = saved && (yield* this.insisted('append', { ...hold, number, count: this.int(1, 4) }, leaseEnd));
      const renewed = stored && (yield* this.sent('renew', hold));
      if (!stored || renewed === undefined) {
        over('abort');
        return null;
      }
    }
    for (let index = 0; index < position % 3; index += 1) {
      const callId = `${turnId}-${index}`;
      const use = { tool: TOOLS[(position + index) % TOOLS.length], tokens: 10 * position + index };
      if (!claim.steps.includes(stepOfCall(callId))) {
        this.run.note(name, { what: 'step', turnId, attempt, step: stepOfCall(callId) });
        const saved = yield* this.insisted('saveStep', { ...hold, step: stepOfCall(callId), value: use }, leaseEnd);
        if (!saved) {
          over('abort');
          return null;
        }
      }
      this.run.note(name, { what: 'use', turnId, attempt, callId, ...use, failed: false });
    }
    over('end');
    if (position % 4 === 0 && !claim.steps.includes('go')) {
      yield* this.park(claim, leaseEnd);
      return null;
    }
    if (this.random.chance(0.2) && failures < 5) {
      yield* this.insisted(this.random.pick(['retry', 'release'] as const), hold, leaseEnd);
      return null;
    }
    const key = this.run.store.keyOf(turnId);
    const end = this.random.chance(0.1)
      ? ({ status: 'failed', text: null } as const)
      : this.run.store.isMarked(turnId)
        ? ({ status: 'cancelled', text: null } as const)
        : ({ status: 'awaiting-input', text: `${key} ${attempt}` } as const);
    const settled = yield* this.insisted('settle', { ...hold, ...end }, leaseEnd);
    return settled?.next ?? null;
  }

  private *park(claim: Claim, leaseEnd: number): Program {
    const { turnId, fence } = claim;
    for (const teller of [1, 2]) this.start(`teller-${turnId}-${fence}-${teller}`, (name) => this.tell(name, turnId));
    const suspended = yield* this.insisted('wait', { ...heldBy(claim), signal: 'go' }, leaseEnd);
    if (suspended?.status === 'running') yield* this.insisted('release', heldBy(claim), leaseEnd);
  }

  private *tell(name: string, turnId: string): Program {
    yield { sleepUs: this.int(0, 500_000) };
    yield* this.resent('signal', { turnId, name: 'go', payload: name });
  }

  /** Repeats a call until it is answered. @returns undefined if it was rejected */
  private *resent<Op extends OperationName>(
    op: Op,
    args: Operations[Op]['args'],
  ): Program<Operations[Op]['value'] | undefined> {
    return yield* this.insisted(op, args, Infinity);
  }

  private *insisted<Op extends OperationName>(
    op: Op,
    args: Operations[Op]['args'],
    until: number,
  ): Program<Operations[Op]['value'] | undefined> {
    while (this.run.now < until) {
      const answer = yield { op, args };
      if (answer instanceof Refused) return undefined;
      if (!(answer instanceof Unanswered)) return answer as Operations[Op]['value'];
      yield { sleepUs: this.int(1000, 50_000) };
    }
    return undefined;
  }

  private *sent<Op extends OperationName>(
    op: Op,
    args: Operations[Op]['args'],
  ): Program<Operations[Op]['value'] | undefined> {
    const answer = yield { op, args };
    return answer instanceof Error ? undefined : (answer as Operations[Op]['value']);
  }

  private startWorker(name: string, life: number): void {
    const process = `${name}.${life}`;
    this.working.add(this.start(process, (own) => this.work(own)));
  }

  private start(name: string, program: (name: string) => Program): Life {
    const life: Life = { name, program: program(name), isDead: false, frozenUntil: 0 };
    this.later(this.int(0, 1000), () => this.goOn(life, undefined));
    return life;
  }

  private goOn(life: Life, answer: unknown): void {
    if (life.isDead) return;
    if (life.frozenUntil > this.run.now) {
      this.later(life.frozenUntil - this.run.now + this.int(1, 100), () => this.goOn(life, answer));
      return;
    }
    const { value: act, done } = life.program.next(answer);
    if (done) return;
    if ('sleepUs' in act) this.later(act.sleepUs, () => this.goOn(life, undefined));
    else this.call(life, this.run.send(life.name, act.op, act.args as never));
  }

  private call(life: Life, sent: SentCall<OperationName>): void {
    const isLost = this.random.chance(0.03);
    const isDone = !isLost || this.random.chance(0.5);
    this.later(this.int(10, 5000), () => {
      if (isDone) sent.takeEffect();
      this.later(this.int(10, 5000), () => this.answer(life, sent, isLost));
    });
  }

  private answer(life: Life, sent: SentCall<OperationName>, isLost: boolean): void {
    if (life.isDead) return;
    if (life.frozenUntil > this.run.now) {
      this.later(life.frozenUntil - this.run.now + this.int(1, 100), () => this.answer(life, sent, isLost));
      return;
    }
    if (isLost) {
      if (this.random.chance(0.5)) sent.giveUp();
      this.goOn(life, new Unanswered());
      return;
    }
    let answer: unknown;
    try {
      answer = sent.answer();
    } catch (error) {
      answer = error;
    }
    this.goOn(life, answer);
  }

  /** Repeatedly kills or freezes a process. */
  private harm(): void {
    const life = this.random.pick([...this.working]);
    const [, name, number] = /(.*)\.(\d+)/.exec(life.name) ?? [];
    if (this.random.chance(0.5)) {
      this.run.fault('kill', life.name);
      life.isDead = true;
      this.working.delete(life);
      this.startWorker(name, Number(number) + 1);
    } else if (life.frozenUntil < this.run.now) {
      this.run.fault('stop', life.name);
      life.frozenUntil = this.run.now + this.int(10_000, 2 * LEASE_US);
      this.later(life.frozenUntil - this.run.now, () => this.run.fault('continue', life.name));
    }
    this.later(this.int(10_000, 2_000_000), () => this.harm());
  }

  private later(us: number, happen: () => void): void {
    const at = this.run.now + us;
    const place = this.agenda.findIndex((other) => other.at > at);
    this.agenda.splice(place === -1 ? this.agenda.length : place, 0, { at, happen });
  }

  /** Returns an integer from `from` to below `to`; `from` if the range is empty. */
  private int(from: number, to: number): number {
    return to > from ? this.random.int(from, to - 1) : from;
  }
}

interface Life {
  readonly name: string;
  readonly program: Program;
  isDead: boolean;
  frozenUntil: number;
}
