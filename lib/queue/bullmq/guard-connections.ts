import { type Queue, type Worker } from 'bullmq';

/** What BullMQ has of `pg` when PostgreSQL is its backend. */
interface Pool {
  on(event: 'connect', listener: (client: { on(event: 'error', listener: () => void): void }) => void): void;
}

const guarded = new WeakSet<Pool>();

/**
 * While BullMQ's PostgreSQL backend looks at its tables nobody listens for errors of that connection: one that breaks just
 * then would end the process. What was asked of it is rejected in any case, so nothing is lost by not hearing of it twice.
 */
export function guardConnections(part: Queue | Worker): void {
  const { connection } = part.getBackend() as { readonly connection?: { readonly pool?: Pool } };
  const pool = connection?.pool;
  // The application's own pool comes again with each queue and worker.
  if (!pool || guarded.has(pool)) return;
  guarded.add(pool);
  pool.on('connect', (client) => client.on('error', () => undefined));
}
