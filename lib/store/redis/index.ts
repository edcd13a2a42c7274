/**
 * The store on Redis 7 or newer, for any number of processes. Pass `redisAdapter` as `adapter` of
 * `SessionsModule.forRoot`. It needs the package `ioredis`. Each operation runs one atomic Lua script.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/redis
 */

export { redisAdapter } from './redis-adapter.js';
export { type RedisAdapterOptions, type RedisClient } from './redis-adapter.options.js';
