import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** The time limit of a load: after it, a turn is lost. */
const PATIENCE_MS = 300_000;

type Method = (...args: never[]) => Promise<unknown>;

/** A separate process with a host. */
export class HostProcess<Host extends { [M in keyof Host]: Method }> {
  private readonly child: ChildProcess;
  private readonly answers = new EventEmitter();
  private calls = 0;

  /** @param program a file in this folder that serves the host, see serve-host.ts */
  constructor(program: string) {
    this.child = fork(fileURLToPath(new URL(program, import.meta.url)));
    this.child.on('message', (answer: Answer) => this.answers.emit(String(answer.id), answer));
    this.child.once('exit', () => {
      for (const id of this.answers.eventNames()) this.answers.emit(id, { error: 'The process ended.' });
    });
  }

  async call<M extends keyof Host & string>(
    method: M,
    ...args: Parameters<Host[M]>
  ): Promise<Awaited<ReturnType<Host[M]>>> {
    this.calls += 1;
    const id = this.calls;
    const answered = once(this.answers, String(id), { signal: AbortSignal.timeout(PATIENCE_MS) });
    this.child.send({ id, method, args } satisfies Call);
    const [{ error, result }] = (await answered) as [Answer];
    if (error !== undefined) throw new Error(error);
    return result as Awaited<ReturnType<Host[M]>>;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.disconnect();
    await exited;
  }
}
