import { type Queue, type Worker } from 'bullmq';
import { guardClient, guardPool, type PgClient, type PgPool } from '../../common/pg-clients.js';
import { backendOf } from './backend-of.js';

/**
 * The parts of `pg` that BullMQ uses with PostgreSQL: a pool, and the module from which it creates a client for
 * notifications.
 */
interface PostgresConnection {
  readonly pool?: PgPool;
  pgModule?: { readonly Client: new (...args: never[]) => PgClient };
}

/**
 * Prevents that a PostgreSQL failure just after BullMQ has connected, or while it checks its tables, ends the process.
 */
export function guardConnections(part: Queue | Worker): void {
  const { connection } = backendOf(part) as { readonly connection?: PostgresConnection };
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
