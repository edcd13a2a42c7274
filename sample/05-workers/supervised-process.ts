import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface ProcessOptions {
  readonly name: string;
  /** The program, beside this file. */
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Whether it can be started again when it dies; default true. */
  readonly restart?: boolean;
}

/** A process that is started again when it dies. */
export class SupervisedProcess {
  private child: ChildProcess | null = null;
  private stopping = false;

  constructor(private readonly options: ProcessOptions) {}

  /** @returns what it says when it is ready. @throws when it ends before */
  async start(): Promise<unknown> {
    const { name, program, args = [], env } = this.options;
    // Detached: a Ctrl-C reaches the starter alone, which then stops the processes in order.
    const child = fork(fileURLToPath(new URL(program, import.meta.url)), args, {
      env: { ...process.env, ...env },
      detached: true,
    });
    this.child = child;
    const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    const early = exit.then(([code, signal]) => {
      throw new Error(`${name} did not start: ${signal ?? `exit code ${code}`}.`);
    });
    const [ready] = (await Promise.race([once(child, 'message'), early])) as [unknown];
    void early.catch(() => undefined);
    child.once('exit', (code, signal) => this.ended(signal ?? `exit code ${code}`));
    return ready;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    // Its end of the channel closes, which it takes for SIGTERM.
    if (child.connected) child.disconnect();
    await exited;
  }

  private ended(how: string): void {
    if (this.stopping) return;
    const { name, restart = true } = this.options;
    if (!restart) throw new Error(`${name} ended: ${how}.`);
    console.log(`${name} ended (${how}) and is started again.`);
    this.start().then(
      () => console.log(`${name} is back.`),
      (error: Error) => {
        if (!this.stopping) throw error;
      },
    );
  }
}
