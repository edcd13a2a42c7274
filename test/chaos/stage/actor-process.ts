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
/** More than the crashes that a turn is allowed: a run ends although a turn crashes for ever. */
const MAX_CRASHES = 12;

/** Receives what happens to an actor. */
export interface ActorWatch {
  /** Reports a failure that the scenario did not cause. */
  failed(error: Error): void;
  /** A handler has killed the process, which is started again. */
  crashed(): void;
  /** The process runs again after a crash. */
  restarted(): void;
}

/** An actor through all of its lives. What goes wrong without having been asked for ends the run. */
export class ActorProcess {
  private child: ChildProcess | null = null;
  private lives = 0;
  private ended: Promise<unknown> = Promise.resolve();
  private crashes = 0;
  private isQuiet = false;
  /** Its end was asked for. */
  private leaving = false;
  /** It begins no other life. */
  private isOver = false;

  /**
   * @param setup of a life
   * @param env over the environment of this process, for example another clock
   */
  constructor(
    readonly name: string,
    private readonly folder: string,
    private readonly setup: (process: string) => ActorSetup,
    private readonly env: Readonly<Record<string, string>>,
    private readonly watch: ActorWatch,
  ) {}

  /** Of its present life. */
  get process(): string {
    return `${this.name}.${this.lives}`;
  }

  /** Begins another life, and another one while the store is not there in time, as a supervisor does. Resolves when it runs. */
  async start(): Promise<void> {
    const giveUp = performance.now() + START_LIMIT_MS;
    while (!this.isOver && !(await this.begin())) {
      if (this.leaving) return;
      if (performance.now() > giveUp) return this.fail('did not start in time');
    }
  }

  /** SIGKILL. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.leaving = true;
    this.child?.kill('SIGKILL');
    await this.ended;
  }

  /** Kills it for good. */
  async end(): Promise<void> {
    this.isOver = true;
    await this.kill();
  }

  /** Stands still, as under a debugger or on a machine that is out of breath. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** SIGTERM, as at a deploy. Resolves when it has closed its application and is gone. */
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

  /** It shall submit nothing any more. @returns whether it does so */
  silence(): boolean {
    const order: ActorOrder = 'be quiet';
    // One that has just died is heard of otherwise.
    if (!this.isQuiet) this.child?.send(order, () => undefined);
    return this.isQuiet;
  }

  /** @returns whether it runs */
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

  /** A handler has killed it. */
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
