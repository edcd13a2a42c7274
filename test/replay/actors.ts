import { type WorkerSetup } from './worker-calls.js';
import { WorkerProcess } from './worker-process.js';

/** The processes of a replay: one that does everything, or one that accepts turns and several that run them. */
export class Actors {
  /** The process that receives the calls. */
  readonly front: WorkerProcess;
  /** The first worker is killed next. */
  private workers: readonly WorkerProcess[];

  constructor(setup: Omit<WorkerSetup, 'role'>, workers: number) {
    if (setup.queue) {
      this.front = new WorkerProcess({ ...setup, role: 'submit' });
      const fail = (error: Error): void => this.front.fail(error);
      this.workers = Array.from({ length: workers }, () => new WorkerProcess({ ...setup, role: 'work' }, fail));
    } else {
      this.front = new WorkerProcess({ ...setup, role: 'both' });
      this.workers = [this.front];
    }
  }

  get kills(): number {
    return this.workers.reduce((kills, worker) => kills + worker.kills, 0);
  }

  get restarts(): number {
    return this.workers.reduce((restarts, worker) => restarts + worker.restarts, 0);
  }

  /** Resolves when all processes are ready. */
  async ready(): Promise<void> {
    await Promise.all([this.front, ...this.workers].map((each) => each.call('ping')));
  }

  /** Kills the next worker with SIGKILL. @returns false while it, or every other one, is not ready */
  kill(): boolean {
    const [worker, ...others] = this.workers;
    const survives = others.length === 0 || others.some(({ isReady }) => isReady);
    if (!survives || !worker.kill()) return false;
    this.workers = [...others, worker];
    return true;
  }

  async stop(): Promise<void> {
    await Promise.all([...new Set([this.front, ...this.workers])].map((each) => each.stop()));
  }
}
