import { type Answer, type Call } from './host-process.js';

/** Executes the calls of the parent process, see host-process.ts, and ends with it. */
export function serveHost(host: object): void {
  const methods = host as Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>;
  const answer = async ({ id, method, args }: Call): Promise<void> => {
    const reply: Answer = await methods[method](...args)
      .then((result) => ({ id, result }))
      .catch((error: unknown) => ({
        id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }));
    process.send?.(reply);
  };
  process.on('message', (call: Call) => void answer(call));
  process.once('disconnect', () => process.exit());
}
