import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';

/** A store, as JSON that goes to another process. */
export type StoreOptions = TypeormAdapterOptions | RedisAdapterOptions;

export function adapterOf(options: StoreOptions): SessionsAdapter {
  return 'dataSource' in options ? typeormAdapter(options) : redisAdapter(options);
}
