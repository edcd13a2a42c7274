import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type SystemHost } from './system-host.js';

export interface Call {
  readonly id: number;
  readonly method: keyof SystemHost;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** After this a load has certainly lost a turn. */
const PATIENCE_MS = 300_000;
const PROGRAM = fileURLToPath(new URL('./system-program.js', import.meta.url));

/** A process of its own with a SystemHost in it. */
export class SystemProcess {
  private readonly child: ChildProcess = fork(PROGRAM);
  private readonly answers = new EventEmitter();
  private calls = 0;

  constructor() {
    this.child.on('message', (answer: Answer) => this.answers.emit(String(answer.id), answer));
    this.child.once('exit', () => {
      for (const id of this.answers.eventNames()) this.answers.emit(id, { error: 'The process ended.' });
    });
  }

  async call<M extends keyof SystemHost>(
    method: M,
    ...args: Parameters<SystemHost[M]>
  ): Promise<Awaited<ReturnType<SystemHost[M]>>> {
    this.calls += 1;
    const id = this.calls;
    const answered = once(this.answers, String(id), { signal: AbortSignal.timeout(PATIENCE_MS) });
    this.child.send({ id, method, args } satisfies Call);
    const [{ error, result }] = (await answered) as [Answer];
    if (error !== undefined) throw new Error(error);
    return result as Awaited<ReturnType<SystemHost[M]>>;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.disconnect();
    await exited;
  }
}
