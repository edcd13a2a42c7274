import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import {
  type WorkerCalls,
  type WorkerMessage,
  type WorkerMethod,
  type WorkerRequest,
  type WorkerSetup,
} from './worker-calls.js';

interface PendingCall {
  readonly request: WorkerRequest;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A worker across kills: a new process takes over immediately, and calls without an answer
 * are repeated in the same order.
 */
export class WorkerProcess {
  private readonly pending = new Map<number, PendingCall>();
  private child: ChildProcess | null = null;
  private state: 'starting' | 'ready' | 'killed' | 'stopped' = 'starting';
  private failure: Error | null = null;
  private calls = 0;
  private killed = 0;
  private started = 0;

  /** @param onFailure receives errors that make every call throw, so that callers of other processes fail too */
  constructor(
    private readonly setup: WorkerSetup,
    private readonly onFailure: (error: Error) => void = () => undefined,
  ) {
    this.start();
  }

  get isReady(): boolean {
    return this.state === 'ready';
  }

  get kills(): number {
    return this.killed;
  }

  get restarts(): number {
    return this.started - 1;
  }

  /** @throws the error of the worker, or that it exited unexpectedly */
  call<M extends WorkerMethod>(method: M, ...args: Parameters<WorkerCalls[M]>): ReturnType<WorkerCalls[M]> {
    const request: WorkerRequest = { id: (this.calls += 1), method, args };
    const answer = new Promise((resolve, reject) => this.pending.set(request.id, { request, resolve, reject }));
    if (this.failure) this.fail(this.failure);
    else if (this.state === 'ready') this.child?.send(request);
    return answer as ReturnType<WorkerCalls[M]>;
  }

  /** Kills the process with SIGKILL. @returns false if it is not running */
  kill(): boolean {
    if (this.state !== 'ready') return false;
    this.state = 'killed';
    this.killed += 1;
    return this.child?.kill('SIGKILL') ?? false;
  }

  /** Makes every pending and future call throw this error. */
  fail(error: Error): void {
    this.failure = error;
    for (const { reject } of this.pending.values()) reject(error);
    this.pending.clear();
    this.onFailure(error);
  }

  /** Lets the worker close its application. */
  async stop(): Promise<void> {
    const child = this.child;
    this.state = 'stopped';
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    if (child.connected) child.disconnect();
    const limit = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await exited;
    clearTimeout(limit);
  }

  private start(): void {
    const child = fork(fileURLToPath(new URL('./worker.js', import.meta.url)), [JSON.stringify(this.setup)]);
    this.child = child;
    this.state = 'starting';
    this.started += 1;
    child.on('message', (message: WorkerMessage) => this.receive(message));
    child.on('error', (error) => {
      if (this.state !== 'killed') this.fail(error);
    });
    child.once('exit', (code, signal) => this.exited(code, signal));
  }

  private receive(message: WorkerMessage): void {
    if (message.type === 'ready') {
      this.state = 'ready';
      for (const { request } of this.pending.values()) this.child?.send(request);
      return;
    }
    // The last answers of a killed worker may arrive after its successor received the same calls.
    const call = this.pending.get(message.id);
    this.pending.delete(message.id);
    if (message.type === 'result') call?.resolve(message.value);
    else call?.reject(new Error(message.message));
  }

  private exited(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.state === 'killed') this.start();
    else if (this.state !== 'stopped')
      this.fail(new Error(`The worker exited unexpectedly (${signal ?? `code ${code}`}).`));
  }
}
