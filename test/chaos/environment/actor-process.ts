import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCrashed } from '../history/read-history.js';
import { type ActorMessage, type ActorOrder, type ActorSetup } from '../actor/actor-setup.js';

const PROGRAM = fileURLToPath(new URL('../actor/actor.js', import.meta.url));
const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 15_000;
/** More than the allowed losses of a turn, so that a run ends even if a turn always crashes. */
const MAX_CRASHES = 12;

/** Receives what happens to an actor. */
export interface ActorWatch {
  /** Reports a failure that the scenario did not cause. */
  failed(error: Error): void;
  /** Reports that a handler has killed the process, which is restarted. */
  crashed(): void;
  /** Reports that the process runs again after a crash. */
  restarted(): void;
}

/** An actor across restarts of its process. Unexpected failures end the run. */
export class ActorProcess {
  private child: ChildProcess | null = null;
  private lives = 0;
  private ended: Promise<unknown> = Promise.resolve();
  private crashes = 0;
  private isQuiet = false;
  /** True if the scenario ended the process. */
  private leaving = false;
  /** True if it is not restarted any more. */
  private isOver = false;

  /**
   * @param setup returns the setup of a process
   * @param env additional environment variables, for example for another clock
   */
  constructor(
    readonly name: string,
    private readonly folder: string,
    private readonly setup: (process: string) => ActorSetup,
    private readonly env: Readonly<Record<string, string>>,
    private readonly watch: ActorWatch,
  ) {}

  /** The name of the current process. */
  get process(): string {
    return `${this.name}.${this.lives}`;
  }

  /** Starts the process, and again while the store is unavailable, like a supervisor. Resolves when it runs. */
  async start(): Promise<void> {
    const giveUp = performance.now() + START_LIMIT_MS;
    while (!this.isOver && !(await this.begin())) {
      if (this.leaving) return;
      if (performance.now() > giveUp) return this.fail('did not start in time');
    }
  }

  /** Sends SIGKILL. Resolves when the process has ended. */
  async kill(): Promise<void> {
    this.leaving = true;
    this.child?.kill('SIGKILL');
    await this.ended;
  }

  /** Kills the process permanently. */
  async end(): Promise<void> {
    this.isOver = true;
    await this.kill();
  }

  /** Freezes the process, as a debugger or an overloaded machine would. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** Sends SIGTERM, as in a deployment. Resolves when the application has closed and the process has ended. */
  async stop(): Promise<void> {
    this.leaving = true;
    const child = this.child;
    child?.kill('SIGTERM');
    const limit = setTimeout(() => {
      this.fail('did not stop in time');
      child?.kill('SIGKILL');
    }, STOP_LIMIT_MS);
    await this.ended;
    clearTimeout(limit);
  }

  /** Orders it to stop submitting. @returns true once it has stopped */
  silence(): boolean {
    const order: ActorOrder = 'be quiet';
    // A failed send means that the process has just ended, which is handled elsewhere.
    if (!this.isQuiet) this.child?.send(order, () => undefined);
    return this.isQuiet;
  }

  /** @returns true if the process runs */
  private async begin(): Promise<boolean> {
    this.lives += 1;
    const log = openSync(join(this.folder, `${this.name}.log`), 'a');
    const child = fork(PROGRAM, [JSON.stringify(this.setup(this.process))], {
      execArgv: [],
      env: { ...process.env, ...this.env },
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    this.child = child;
    this.leaving = false;
    this.isQuiet = false;
    let runs = false;
    child.on('message', (message: ActorMessage) => {
      if (message === 'ready') runs = true;
      else this.isQuiet = true;
    });
    this.ended = once(child, 'exit').then(([code, signal]) => {
      if (this.child === child) this.child = null;
      if (!runs || this.leaving) return;
      if (hasCrashed(this.folder, this.process)) this.restart();
      else this.fail(`ended by itself (${(signal as string) ?? `code ${code}`})`);
    });
    const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
    await Promise.race([once(child, 'message'), this.ended]);
    clearTimeout(limit);
    return runs;
  }

  /** Handles a kill by a handler. */
  private restart(): void {
    this.crashes += 1;
    if (this.crashes > MAX_CRASHES) return this.fail(`was killed by its handlers ${this.crashes} times`);
    this.watch.crashed();
    this.start().then(
      () => this.watch.restarted(),
      (error: unknown) => this.watch.failed(error as Error),
    );
  }

  private fail(what: string): void {
    this.watch.failed(new Error(`${this.process} ${what}; see ${this.name}.log.`));
  }
}
