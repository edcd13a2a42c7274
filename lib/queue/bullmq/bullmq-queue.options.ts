import { type ConnectionOptions } from 'bullmq';

/**
 * Options of `bullmqQueue`. @typeParam Connection the connection type of the backend; BullMQ's Redis options by default
 */
export interface BullmqQueueOptions<Connection = ConnectionOptions> {
  /**
   * The connection, as BullMQ accepts it: ioredis options, `{ url }`, a client, or the connection of `backendFactory`.
   * Default: the connection passed to `BullModule.forRoot` of `@nestjs/bullmq`.
   *
   * To detect half-open connections, options get `socketTimeout: 12000` by default, and with `backendFactory`
   * `query_timeout: 8000` and `idle_in_transaction_session_timeout: 5000`. Set these yourself on a client or a pool.
   * ioredis's `stringNumbers: true` is rejected.
   */
  readonly connection?: Connection;
  /**
   * The key of `BullModule.forRoot(configKey, ...)`, if `connection` is absent. Default: `BullModule.forRoot(...)`
   * without a key.
   */
  readonly configKey?: string;
  /** `createPostgresBackend` of BullMQ 6, for a deployment without Redis. Default: Redis. */
  readonly backendFactory?: (name: string, options: { readonly connection: Connection }) => object;
  /** The queue's name; the same in every process. Default `agent-sessions`. */
  readonly name?: string;
  /** The prefix of the queue's keys in Redis; `{...}` for a cluster. Default: BullMQ's, `bull`. */
  readonly prefix?: string;
  /** The number of sessions whose turns this process runs concurrently. Default 32. */
  readonly concurrency?: number;
}
