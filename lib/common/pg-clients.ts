/** What we need of `pg`, whoever has loaded it. */
export interface PgClient {
  on(event: 'error', listener: () => void): void;
}

export interface PgPool {
  on(event: 'connect', listener: (client: PgClient) => void): void;
}

const guarded = new WeakSet<PgPool>();

/**
 * A client of `pg` whose connection breaks while nobody listens for its errors ends the process. Libraries begin to listen a
 * moment after they were given one, or never: a server that restarts may be quicker. What was asked of the client is
 * rejected in any case, so nothing is lost by not hearing of it twice.
 */
export function guardPool(pool: PgPool): void {
  // An application's pool comes more than once.
  if (guarded.has(pool)) return;
  guarded.add(pool);
  pool.on('connect', guardClient);
}

export function guardClient(client: PgClient): void {
  client.on('error', () => undefined);
}
