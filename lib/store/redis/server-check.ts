import { type Logger } from '@nestjs/common';
import { type Redis } from 'ioredis';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { type RedisConnection } from './redis-connection.js';
import { isForbidden } from './redis-errors.js';
import { SCRIPTS } from './redis-scripts.js';
import { redisMessages } from './redis.messages.js';
import { describeServer, judgeServer, reportOf } from './server-report.js';

/**
 * Logs the version and settings of each server at startup, and warns about settings that an operator should change.
 * @throws SessionsConfigurationError, StoreUnavailableError if the server cannot store turns
 */
export async function checkServer(
  connection: RedisConnection,
  base: string,
  logger: Logger,
  maxValueBytes: number,
): Promise<void> {
  const servers = connection.primaries();
  for (const server of servers) {
    const info = await connection.read(() => unlessForbidden(server.info(), undefined));
    if (info === undefined) {
      logger.warn('Redis: the user may not call INFO, so persistence and eviction settings are unknown. Allow +info.');
      continue;
    }
    const config = await connection.read(() => unlessForbidden(configOf(server), []));
    const report = reportOf(info, config);
    const warnings = judgeServer(report, maxValueBytes);
    if (report.maxValueBytes !== undefined) connection.limitValues(report.maxValueBytes);
    logger.log(`${describeServer(report)}.`);
    for (const warning of warnings) logger.warn(`Redis: ${warning}`);
    if (info.includes('\ncluster_enabled:1') && !('nodes' in connection.client)) {
      logger.warn('Redis: the server is a node of a cluster. Pass an ioredis Cluster as client.');
    }
  }
  const problem = await missingPermissions(connection, base);
  if (problem !== null) throw new SessionsConfigurationError(problem);
}

/** Checks the permissions of the user. @throws StoreUnavailableError with the reason `deployment` */
export async function probeRedis(connection: RedisConnection, base: string): Promise<void> {
  const problem = await missingPermissions(connection, base);
  if (problem !== null) throw new StoreUnavailableError(problem, { maybeApplied: false, reason: 'deployment' });
}

/** Every command that the scripts call, and EVALSHA, which runs them. */
const COMMANDS: readonly string[] = [
  ...new Set(['EVALSHA', ...Object.values(SCRIPTS).flatMap(({ lua }) => commandsOf(lua))]),
].sort();

function commandsOf(lua: string): string[] {
  return [...lua.matchAll(/(?:redis\.call|call_with)\('(\w+)'/g)].map(([, command]) => command);
}

/** Checks every command, because a script without permission for a command fails halfway. */
async function missingPermissions(connection: RedisConnection, base: string): Promise<string | null> {
  const forbidden = await connection.read(() =>
    connection.client.eval(SCRIPTS.forbiddenCommands.lua, 1, base, ...COMMANDS),
  );
  const named = (forbidden as string[]).map((command) => `+${command.toLowerCase()}`);
  if (named.length === 0) return null;
  return redisMessages.missingPermissions(named, base);
}

async function unlessForbidden<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (isForbidden(error)) return otherwise;
    throw error;
  }
}

async function configOf(server: Redis): Promise<string[]> {
  return (await server.config('GET', 'appendfsync', 'save', 'proto-max-bulk-len')) as string[];
}
