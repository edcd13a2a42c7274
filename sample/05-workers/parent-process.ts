import { once } from 'node:events';

/** Reports to the process that started this one, if any, that it is ready. That process may have ended in the meantime. */
export function notifyParent(message: object): void {
  // Without a callback, a closed channel would end this process with an error.
  process.send?.(message, undefined, undefined, () => undefined);
}

/** Resolves when the process that started this one has ended or closes the channel, also if it did so before the call. */
export async function parentEnded(): Promise<void> {
  if (process.connected !== false) await once(process, 'disconnect');
}
