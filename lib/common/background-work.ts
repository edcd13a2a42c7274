import { AsyncLocalStorage } from 'node:async_hooks';

/** Work that only the shutdown of the process waits for. */
export class BackgroundWork {
  private readonly running = new Set<Promise<void>>();

  /** @param work a promise that never rejects */
  add(work: Promise<void>): void {
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  /** Resolves when no work is running. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }
}

/** Calls a function outside of any request's context, so that its work is not part of the request's trace. */
export type OutsideRequests = <T>(work: () => T) => T;

/**
 * Captures the current context, for objects that are created at startup and later run background work triggered by a
 * request. Without it, that work would run in the asynchronous context of the request.
 */
export function outsideRequests(): OutsideRequests {
  return AsyncLocalStorage.snapshot();
}
