import { type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { forkProgram, kill } from './child-process.js';
import { type StoreOptions } from './stores.js';

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly code?: string };
  readonly ready?: boolean;
  readonly accepted?: string;
}

const PROGRAM = fileURLToPath(new URL('../store/fixtures/store-process.mjs', import.meta.url));

/** A process with an open store of the built package. */
export class StoreProcess {
  /** Ids of turns that the process has reported as accepted, see `flood`. */
  readonly accepted: string[] = [];
  /** Allows many concurrent answers, each with an error listener. */
  private readonly answers = new EventEmitter().setMaxListeners(0);
  private calls = 0;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (answer: Answer) => {
      if (answer.accepted !== undefined) this.accepted.push(answer.accepted);
      else this.answers.emit(answer.ready ? 'ready' : String(answer.id), answer);
    });
  }

  /** Resolves when the program is loaded. */
  static async start(options: StoreOptions): Promise<StoreProcess> {
    const child = forkProgram(PROGRAM, options);
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

  /** Makes the process accept turns endlessly, with the given concurrency. */
  flood(turn: unknown, atOnce: number): void {
    this.child.send({ id: 0, method: 'flood', args: [turn, atOnce] });
  }

  /** Sends SIGKILL and resolves when the process has ended. */
  kill(): Promise<void> {
    return kill(this.child);
  }
}
