import { openJobSystem, type JobSystemName } from './open-job-system.js';
import { type JobPlaces, type JobSystem } from './job-system.js';
import { Witness } from './witness.js';

export interface JobHostOptions {
  readonly system: JobSystemName;
  readonly places: JobPlaces;
  readonly concurrency: number;
  readonly prefix: string;
  /** The turns of each session; the first one is not measured. */
  readonly turns: number;
}

/** Opens a system in this process, with a session and a caller for each concurrent turn. */
export class JobHost {
  private system!: JobSystem;
  private witness!: Witness;

  async open({ system, places, concurrency, prefix, turns }: JobHostOptions): Promise<void> {
    globalThis.gc?.();
    this.witness = new Witness(new Array<number>(concurrency).fill(turns), true);
    this.system = await openJobSystem(system, { places, concurrency, prefix, witness: this.witness });
    await this.system.prepare(concurrency);
    // Opens the connections.
    await this.callers(0, 1);
  }

  /** Every caller submits a turn when the previous one has returned its result. @returns milliseconds */
  async run(): Promise<number> {
    const startedAt = performance.now();
    await this.callers(1, Infinity);
    return performance.now() - startedAt;
  }

  /** @throws WrongAnswerError */
  async verify(): Promise<void> {
    await this.witness.everything;
    this.witness.verify();
    await this.system.verify();
  }

  close(): Promise<void> {
    return this.system.close();
  }

  private async callers(from: number, to: number): Promise<void> {
    const callers = this.witness.load.map(async (turns, session) => {
      for (let turn = from; turn < Math.min(turns, to); turn += 1) await this.system.execute(session, turn);
    });
    await Promise.all(callers);
  }
}
