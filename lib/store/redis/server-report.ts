import { SessionsConfigurationError } from '../../common/sessions.error.js';

const OLDEST_MAJOR = 7;

/** What INFO says of a server, as far as it decides what survives. */
export interface ServerReport {
  readonly version: string;
  readonly evictionPolicy: string;
  /** Bytes; 0: no limit. */
  readonly maxMemory: number;
  readonly usedMemory: number;
  readonly appendOnly: boolean;
  /** Snapshots (RDB) are configured, as far as the server says. */
  readonly role: string;
}

export function parseInfo(info: string): ServerReport {
  const fields = new Map(info.split('\r\n').map((line) => line.split(/:(.*)/s, 2) as [string, string]));
  return {
    version: fields.get('redis_version') ?? '0',
    evictionPolicy: fields.get('maxmemory_policy') ?? 'unknown',
    maxMemory: Number(fields.get('maxmemory') ?? 0),
    usedMemory: Number(fields.get('used_memory') ?? 0),
    appendOnly: fields.get('aof_enabled') === '1',
    role: fields.get('role') ?? 'unknown',
  };
}

/**
 * What an operator should know of the server.
 * @returns warnings
 * @throws SessionsConfigurationError for a server that is too old, or that may throw sessions away
 */
export function judgeServer(report: ServerReport): string[] {
  const { version, evictionPolicy, appendOnly, role } = report;
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new SessionsConfigurationError(
      `redisAdapter: the server is Redis ${version}; ${OLDEST_MAJOR} or newer is needed.`,
    );
  }
  if (evictionPolicy.startsWith('allkeys')) {
    throw new SessionsConfigurationError(
      `redisAdapter: the server's maxmemory-policy is ${evictionPolicy}, so it throws sessions and turns away when its ` +
        'memory is full. Set it to noeviction, or use a server of its own.',
    );
  }
  const warnings: string[] = [];
  if (evictionPolicy.startsWith('volatile')) {
    warnings.push(
      `maxmemory-policy is ${evictionPolicy}: state documents with a TTL may go before their time. Set it to noeviction.`,
    );
  }
  if (!appendOnly) {
    warnings.push(
      'appendonly is off: what was written since the last snapshot is lost when the server stops. See docs/stores/redis.md.',
    );
  }
  if (role === 'slave') warnings.push('the server is a replica, which refuses to write.');
  return warnings;
}
