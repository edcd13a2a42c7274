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
 * The worker, however often it is killed: a new process takes over at once, and what the one before did not answer is
 * asked again, in the same order.
 */
export class WorkerProcess {
  private readonly pending = new Map<number, PendingCall>();
  private child: ChildProcess | null = null;
  private state: 'starting' | 'ready' | 'killed' | 'stopped' = 'starting';
  private failure: Error | null = null;
  private calls = 0;
  private killed = 0;
  private started = 0;

  /** @param onFailure hears of what makes every call throw: those who wait for another process must know, too */
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

  /** @throws what the worker answered, or that it ended by itself */
  call<M extends WorkerMethod>(method: M, ...args: Parameters<WorkerCalls[M]>): ReturnType<WorkerCalls[M]> {
    const request: WorkerRequest = { id: (this.calls += 1), method, args };
    const answer = new Promise((resolve, reject) => this.pending.set(request.id, { request, resolve, reject }));
    if (this.failure) this.fail(this.failure);
    else if (this.state === 'ready') this.child?.send(request);
    return answer as ReturnType<WorkerCalls[M]>;
  }

  /** SIGKILL: nothing in the process gets to know. @returns false when there is nobody to kill just now */
  kill(): boolean {
    if (this.state !== 'ready') return false;
    this.state = 'killed';
    this.killed += 1;
    return this.child?.kill('SIGKILL') ?? false;
  }

  /** Gives up: every call, from now on too, throws this. */
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
    // The last words of a killed worker may come after its successor was asked the same.
    const call = this.pending.get(message.id);
    this.pending.delete(message.id);
    if (message.type === 'result') call?.resolve(message.value);
    else call?.reject(new Error(message.message));
  }

  private exited(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.state === 'killed') this.start();
    else if (this.state !== 'stopped')
      this.fail(new Error(`The worker ended by itself (${signal ?? `code ${code}`}).`));
  }
}
