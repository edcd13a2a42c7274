import {
  type Claim,
  type Entry,
  type Happening,
  type Held,
  type OperationName,
  type Operations,
  stepOfCall,
  type StoreContents,
} from '../../history/history.js';
import { Refused, SimulatedStore, type SimulatedUse } from './simulated-store.js';

/** The fate of a call: `lost` took effect, but the answer is lost; `missed` had no effect, and the outcome is unknown. */
export type Fate = 'answered' | 'lost' | 'missed';

/** A call without an answer or a rejection. */
export class Unanswered extends Error {}

/** Processes that call a simulated store, and their history. */
export class SimulatedRun {
  now = 1_000_000;
  readonly store: SimulatedStore;
  readonly entries: Entry[] = [];
  private attempts = 0;
  private readonly calls = new Map<string, number>();

  /** @param maxLost number of lost attempts after which a turn fails */
  constructor(maxLost = Infinity) {
    this.store = new SimulatedStore(maxLost);
  }

  process(name: string): SimulatedProcess {
    return new SimulatedProcess(name, this);
  }

  pass(us: number): void {
    this.now += us;
  }

  note(process: string, happening: Happening): void {
    this.entries.push({ at: this.now, process, type: 'note', ...happening });
  }

  fault(fault: string, target: string): void {
    this.note('driver', { what: 'fault', fault, target });
  }

  send<Op extends OperationName>(process: string, op: Op, args: Operations[Op]['args']): SentCall<Op> {
    const call = (this.calls.get(process) ?? 0) + 1;
    this.calls.set(process, call);
    this.entries.push({ at: this.now, process, type: 'invoke', call, op, args } as Entry);
    return new SentCall(this, process, call, op, args);
  }

  nextAttempt(process: string): string {
    this.attempts += 1;
    return `${process}/${this.attempts}`;
  }

  finish(): { readonly entries: Entry[]; readonly contents: StoreContents } {
    const entries = [...this.entries].sort((a, b) => a.at - b.at);
    return structuredClone({ entries, contents: this.store.contents() });
  }
}

/** A pending call. */
export class SentCall<Op extends OperationName> {
  private outcome: { readonly value: Operations[Op]['value'] } | { readonly refused: Refused } | null = null;

  constructor(
    private readonly run: SimulatedRun,
    private readonly process: string,
    private readonly call: number,
    private readonly op: Op,
    private readonly args: Operations[Op]['args'],
  ) {}

  takeEffect(): void {
    const { store } = this.run;
    store.now = this.run.now;
    try {
      const perform = store[this.op] as unknown as (args: unknown) => Operations[Op]['value'];
      this.outcome = { value: perform.call(store, this.args) };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.outcome = { refused: error };
    }
  }

  /** @throws Refused */
  answer(): Operations[Op]['value'] {
    const { outcome } = this;
    if (!outcome) throw new Error('The call has not taken effect.');
    if ('refused' in outcome) {
      this.complete({ type: 'fail', error: outcome.refused.code });
      throw outcome.refused;
    }
    this.complete({ type: 'ok', value: structuredClone(outcome.value) });
    return outcome.value;
  }

  /** Reports to the process that no answer will come. */
  giveUp(): void {
    this.complete({ type: 'unknown', error: 'STORE_UNAVAILABLE' });
  }

  private complete(completion: { type: 'ok' | 'fail' | 'unknown'; value?: unknown; error?: string }): void {
    this.run.entries.push({ at: this.run.now, process: this.process, call: this.call, ...completion });
  }
}

/** Helpers for one process whose calls take almost no time. */
export class SimulatedProcess {
  constructor(
    readonly name: string,
    private readonly run: SimulatedRun,
  ) {}

  /** @throws Refused; Unanswered if the fate of the call is no answer */
  call<Op extends OperationName>(
    op: Op,
    args: Operations[Op]['args'],
    fate: Fate = 'answered',
  ): Operations[Op]['value'] {
    const sent = this.run.send(this.name, op, args);
    this.run.pass(100);
    if (fate !== 'missed') sent.takeEffect();
    this.run.pass(100);
    if (fate !== 'answered') throw new Unanswered();
    const value = sent.answer();
    this.run.pass(100);
    return value;
  }

  claim(sessionId: string): Claim {
    const claim = this.call('claim', { sessionId });
    if (!claim) throw new Error(`Session ${sessionId} has no turn to claim.`);
    return claim;
  }

  /** @returns the name of the attempt */
  begin({ sessionId, turnId, failures, lost }: Claim): string {
    const attempt = this.run.nextAttempt(this.name);
    const tokens = this.run.store.tokensBefore(turnId);
    this.run.note(this.name, { what: 'begin', sessionId, turnId, attempt, number: failures + lost + 1, tokens });
    this.run.pass(100);
    return attempt;
  }

  end({ turnId }: Held, attempt: string, what: 'end' | 'abort' = 'end'): void {
    this.run.note(this.name, { what, turnId, attempt });
    this.run.pass(100);
  }

  crash({ turnId }: Held, attempt: string): void {
    this.run.note(this.name, { what: 'crash', turnId, attempt });
    this.run.pass(100);
  }

  step(claim: Claim, attempt: string, step: string): void {
    this.run.note(this.name, { what: 'step', turnId: claim.turnId, attempt, step });
    this.run.pass(100);
    this.call('saveStep', { ...heldBy(claim), step, value: attempt });
  }

  use(claim: Claim, attempt: string, index: number, { tool, tokens }: SimulatedUse): void {
    const { turnId } = claim;
    const callId = `${turnId}-${index}`;
    const step = stepOfCall(callId);
    if (!claim.steps.includes(step)) {
      this.run.note(this.name, { what: 'step', turnId, attempt, step });
      this.call('saveStep', { ...heldBy(claim), step, value: { tool, tokens } });
    }
    this.run.note(this.name, { what: 'use', turnId, attempt, callId, tool, tokens, failed: false });
    this.run.pass(100);
  }
}

export function heldBy({ sessionId, turnId, fence }: Held): Held {
  return { sessionId, turnId, fence };
}
