import { setTimeout as delay } from 'node:timers/promises';
import { type ProcessRole } from 'nestjs-agent-sessions';
import { type SystemName, type TurnSystem } from './turn-system.js';
import { openSystem } from './open-system.js';
import { type Load, Witness } from './witness.js';

export interface HostOptions {
  readonly system: SystemName;
  readonly url: string;
  readonly role: ProcessRole;
  readonly concurrency: number;
  readonly load: Load;
}

/** Concurrent callers, each of which waits until its turn is stored. */
const PRODUCERS = 16;
/** The pause between turns on an idle system, so that all parts wait again. */
const IDLE_MS = { least: 2, more: 4 };

/** Opens a system in this process, and runs loads on it. */
export class SystemHost {
  private system!: TurnSystem;
  private witness!: Witness;
  private load!: Load;

  async open({ system, url, role, concurrency, load }: HostOptions): Promise<void> {
    globalThis.gc?.();
    this.load = load;
    // Plain BullMQ keeps no order.
    this.witness = new Witness(load, system !== 'bullmq');
    this.system = await openSystem(system, { url, role, concurrency, witness: this.witness });
  }

  prepare(): Promise<void> {
    return this.system.prepare(this.load.length);
  }

  /** Submits the turns of some sessions: each producer alternates between its own sessions. */
  async submit(from = 0, to = this.load.length): Promise<void> {
    const producers = Array.from({ length: PRODUCERS }, async (_, producer) => {
      const most = Math.max(...this.load.slice(from, to));
      for (let turn = 0; turn < most; turn += 1) {
        for (let session = from + producer; session < to; session += PRODUCERS) {
          if (turn < this.load[session]) await this.system.submit(session, turn);
        }
      }
    });
    await Promise.all(producers);
  }

  /** Runs turns that were submitted before. @returns the milliseconds from the start of the first to the end of the last */
  async drain(): Promise<number> {
    await this.witness.everything;
    return this.witness.endOf() - this.witness.startedAt;
  }

  /** @returns the milliseconds from the first submit to the end of the last turn */
  async submitAndDrain(): Promise<number> {
    const startedAt = performance.now();
    await this.submit();
    await this.witness.everything;
    return this.witness.endOf() - startedAt;
  }

  /** Every session has a caller that submits a turn when the previous one has returned its result. @returns milliseconds */
  async closedLoop(): Promise<number> {
    const startedAt = performance.now();
    const callers = this.load.map(async (turns, session) => {
      for (let turn = 0; turn < turns; turn += 1) await this.system.execute(session, turn);
    });
    await Promise.all(callers);
    return performance.now() - startedAt;
  }

  /** Runs one turn after the other, with pauses. @returns the milliseconds from submit to result, per turn */
  async latencies(): Promise<number[]> {
    const latencies: number[] = [];
    for (let turn = 0; turn < Math.max(...this.load); turn += 1) {
      for (let session = 0; session < this.load.length; session += 1) {
        await delay(IDLE_MS.least + IDLE_MS.more * Math.random());
        const startedAt = performance.now();
        await this.system.execute(session, turn);
        latencies.push(performance.now() - startedAt);
      }
    }
    return latencies;
  }

  /** Returns the times of the turns of all sessions but the first, relative to the first session. */
  async besideTheFirst(): Promise<{ readonly ms: number; readonly turnsOfTheFirst: number }> {
    await this.witness.everything;
    const { begun, startedAt } = this.witness;
    const before = begun.slice(
      0,
      begun.findLastIndex((session) => session > 0),
    );
    return {
      ms: this.witness.endOf(1) - startedAt,
      turnsOfTheFirst: before.filter((session) => session === 0).length,
    };
  }

  /** Checks the turns of the working process. @throws WrongAnswerError */
  async verify(): Promise<void> {
    await this.witness.everything;
    this.witness.verify();
    await this.system.verify();
  }

  close(): Promise<void> {
    return this.system.close();
  }
}
