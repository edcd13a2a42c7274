/**
 * The Redis store.
 * @module nestjs-agent-sessions/redis
 */

export { redisAdapter } from './redis-adapter.js';
export { type RedisAdapterOptions, type RedisClient } from './redis-adapter.options.js';
