/** A process with a system in it, which does what its parent says; see system-process.ts. */
import 'reflect-metadata';
import { type Answer, type Call } from './system-process.js';
import { SystemHost } from './system-host.js';

const host = new SystemHost();
process.on('message', (call: Call) => void answer(call));
process.once('disconnect', () => process.exit());

async function answer({ id, method, args }: Call): Promise<void> {
  const reply: Answer = await (host[method] as (...args: unknown[]) => Promise<unknown>)
    .apply(host, [...args])
    .then((result) => ({ id, result }))
    .catch((error: unknown) => ({
      id,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }));
  process.send?.(reply);
}
