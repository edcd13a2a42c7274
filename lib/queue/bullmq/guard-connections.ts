import { type Queue, type Worker } from 'bullmq';
import { guardClient, guardPool, type PgClient, type PgPool } from '../../common/pg-clients.js';

/** What BullMQ has of `pg` when PostgreSQL is its backend: a pool, and what it makes a client of its own with, to listen. */
interface PostgresConnection {
  readonly pool?: PgPool;
  pgModule?: { readonly Client: new (...args: never[]) => PgClient };
}

/** A PostgreSQL that goes away just after BullMQ has connected, or while it looks at its tables, must not end the process. */
export function guardConnections(part: Queue | Worker): void {
  const { connection } = part.getBackend() as { readonly connection?: PostgresConnection };
  if (connection?.pool) guardPool(connection.pool);
  if (!connection?.pgModule) return;
  const { Client } = connection.pgModule;
  class GuardedClient extends Client {
    constructor(...args: never[]) {
      super(...args);
      guardClient(this);
    }
  }
  connection.pgModule = Object.create(connection.pgModule, { Client: { value: GuardedClient } }) as {
    Client: typeof Client;
  };
}
