import { type Cluster, type Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

export interface RedisAdapterOptions {
  /** The application's ioredis client, which stays open when the adapter closes. This or `url`. */
  readonly client?: RedisClient;
  /** Of a client of our own: `redis://user:password@host:6379/0`, `rediss://` for TLS. */
  readonly url?: string;
  /**
   * Every key is named `{keyPrefix}:...`; the braces keep all of them on one shard of a cluster. 1 to 100 letters, digits
   * and `. _ : -`. Default `agent-sessions`.
   */
  readonly keyPrefix?: string;
}
