import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface ProcessOptions {
  readonly name: string;
  /** The program in this folder. */
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Whether to restart the process when it ends. Default: true. */
  readonly restart?: boolean;
}

/** A process that is restarted when it ends. */
export class SupervisedProcess {
  private child: ChildProcess | null = null;
  private starting: Promise<unknown> | null = null;
  private stopping = false;

  constructor(private readonly options: ProcessOptions) {}

  /** Returns the message that the process sends when it is ready. @throws if it ends before that */
  start(): Promise<unknown> {
    this.starting = this.launch();
    return this.starting;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    // Wait for a process that is still starting, because it does not handle signals yet.
    await this.starting?.catch(() => undefined);
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    // The process handles the end of its channel like SIGTERM.
    if (child.connected) child.disconnect();
    await exited;
  }

  private async launch(): Promise<unknown> {
    const { name, program, args = [], env } = this.options;
    // Detached, so that Ctrl-C reaches only the starter, which stops the processes in order.
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

  private ended(how: string): void {
    if (this.stopping) return;
    const { name, restart = true } = this.options;
    if (!restart) throw new Error(`${name} ended: ${how}.`);
    console.log(`${name} ended (${how}) and is started again.`);
    this.start().then(
      () => {
        if (!this.stopping) console.log(`${name} is back.`);
      },
      (error: Error) => {
        if (!this.stopping) throw error;
      },
    );
  }
}
