import { inspect, isDeepStrictEqual } from 'node:util';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type RedisConnection } from './redis-connection.js';
import { SCRIPTS } from './redis-scripts.js';
import { redisMessages } from './redis.messages.js';

/**
 * Checks at startup that the client passes arguments and replies unchanged (FIX-66). Otherwise a call could be carried out
 * by Redis and rejected here.
 * @throws SessionsConfigurationError
 */
export async function checkReplies(connection: RedisConnection, base: string): Promise<void> {
  const argument = 'text';
  const reply = await connection.read(() => connection.client.evalsha(SCRIPTS.echo.sha, 1, base, argument));
  const expected = [1, argument, null, []];
  if (isDeepStrictEqual(reply, expected)) return;
  throw new SessionsConfigurationError(redisMessages.changedReplies(inspect(expected), inspect(reply)));
}
