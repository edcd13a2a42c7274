import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';

/** The options of a store as JSON, for another process. */
export type StoreOptions = TypeormAdapterOptions | RedisAdapterOptions;

export function adapterOf(options: StoreOptions): SessionsAdapter {
  return 'dataSource' in options ? typeormAdapter(options) : redisAdapter(options);
}
