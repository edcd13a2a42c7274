/** Calls every function that waits for one signal. One listener for all, because Node warns of more than ten. */
class AbortCalls {
  private readonly calls = new Set<() => void>();

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this, { once: true });
  }

  add(call: () => void): void {
    this.calls.add(call);
  }

  delete(call: () => void): void {
    if (!this.calls.delete(call) || this.calls.size > 0) return;
    this.signal.removeEventListener('abort', this);
    waiting.delete(this.signal);
  }

  handleEvent(): void {
    waiting.delete(this.signal);
    for (const call of this.calls) call();
  }
}

const waiting = new WeakMap<AbortSignal, AbortCalls>();

/**
 * Calls a function once when a signal is aborted, or now if it is already. Any number of functions may wait for one
 * signal, such as a handler's signal that it passes to many turns.
 * @returns a function that cancels the call; after the last one is cancelled, the signal has no listener of this package
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) {
    call();
    return () => undefined;
  }
  let calls = waiting.get(signal);
  if (!calls) waiting.set(signal, (calls = new AbortCalls(signal)));
  // The same function may be passed several times.
  const own = (): void => call();
  calls.add(own);
  return () => calls.delete(own);
}
