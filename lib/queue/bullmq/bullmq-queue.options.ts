import { type BackendFactory, type ConnectionOptions } from 'bullmq';

/** What `bullmqQueue` takes. @typeParam Connection what the backend connects with; BullMQ's Redis options by default */
export interface BullmqQueueOptions<Connection = ConnectionOptions> {
  /**
   * As BullMQ takes it: ioredis options, `{ url }`, a client, or what `backendFactory` wants. Default: what the application
   * gave to `BullModule.forRoot` of `@nestjs/bullmq`. Options get `socketTimeout: 12000` unless they say otherwise, with
   * `backendFactory` `query_timeout: 8000` and `idle_in_transaction_session_timeout: 5000`, so that half-open connections are
   * found; a client or a pool needs that of its own.
   */
  readonly connection?: Connection;
  /** Of `BullModule.forRoot(configKey, ...)`, when `connection` is left out. Default: that of `BullModule.forRoot(...)` without a key. */
  readonly configKey?: string;
  /** BullMQ's `createPostgresBackend`, for a deployment without Redis. Default: Redis. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's own type takes any backend
  readonly backendFactory?: BackendFactory<any, Connection>;
  /** The queue's name; the same in every process. Default `agent-sessions`. */
  readonly name?: string;
  /** Before the queue's keys in Redis; `{...}` for a cluster. Default: BullMQ's, `bull`. */
  readonly prefix?: string;
  /** Sessions whose turns this process runs at once. Default 32. */
  readonly concurrency?: number;
}
