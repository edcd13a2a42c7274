/** The part of `pg` that this package uses. */
export interface PgClient {
  on(event: 'error', listener: () => void): void;
}

export interface PgPool {
  on(event: 'connect', listener: (client: PgClient) => void): void;
}

const guarded = new WeakSet<PgPool>();

/**
 * Adds error listeners to the clients of a pool. A `pg` client without a listener ends the process if its connection
 * breaks, and libraries add theirs late or never. Pending queries of the client are rejected anyway, so ignoring the
 * event loses nothing.
 */
export function guardPool(pool: PgPool): void {
  // An application may pass the same pool several times.
  if (guarded.has(pool)) return;
  guarded.add(pool);
  pool.on('connect', guardClient);
}

export function guardClient(client: PgClient): void {
  client.on('error', () => undefined);
}
