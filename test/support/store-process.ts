import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type StoreOptions } from './stores.js';

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly code?: string };
  readonly ready?: boolean;
  readonly accepted?: string;
}

const PROGRAM = fileURLToPath(new URL('../store/fixtures/store-process.mjs', import.meta.url));

/** A process that has a store open, on the built package. */
export class StoreProcess {
  /** Ids of turns whose acceptance the process has told of, see `flood`. */
  readonly accepted: string[] = [];
  /** Waits for many answers at once, each with a listener for errors. */
  private readonly answers = new EventEmitter().setMaxListeners(0);
  private calls = 0;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (answer: Answer) => {
      if (answer.accepted !== undefined) this.accepted.push(answer.accepted);
      else this.answers.emit(answer.ready ? 'ready' : String(answer.id), answer);
    });
  }

  /** Resolves when its program is loaded. */
  static async start(options: StoreOptions): Promise<StoreProcess> {
    const child = fork(PROGRAM, [JSON.stringify(options)], { execArgv: [] });
    const started = new StoreProcess(child);
    await once(started.answers, 'ready');
    return started;
  }

  /** Calls a method of its adapter: `init`, `turns.claim` and so on. */
  async call<T>(method: string, ...args: unknown[]): Promise<T> {
    this.calls += 1;
    const id = this.calls;
    const answered = once(this.answers, String(id)) as Promise<[Answer]>;
    this.child.send({ id, method, args });
    const [{ error, result }] = await answered;
    if (error) throw Object.assign(new Error(error.message), error);
    return result as T;
  }

  /** Makes it accept turns without end, so many at once; it ends with the process. */
  flood(turn: unknown, atOnce: number): void {
    this.child.send({ id: 0, method: 'flood', args: [turn, atOnce] });
  }

  /** SIGKILL. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const gone = once(this.child, 'exit');
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGKILL');
    await gone;
  }
}
