/** The functions to call for each signal. One listener calls them all: Node warns of more than ten listeners. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls a function once when a signal is aborted, or now if it is already. Any number of functions may wait for one
 * signal, such as a handler's signal that it passes to many turns.
 * @returns a function that no longer waits
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) {
    call();
    return () => undefined;
  }
  const calls = waiting.get(signal) ?? listen(signal);
  calls.add(call);
  return () => calls.delete(call);
}

function listen(signal: AbortSignal): Set<() => void> {
  const calls = new Set<() => void>();
  waiting.set(signal, calls);
  signal.addEventListener('abort', () => calls.forEach((call) => call()), { once: true });
  return calls;
}
