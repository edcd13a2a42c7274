import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';

const OLDEST_MAJOR = 7;
/** Of the memory that there is; from here on an operator should look. */
const NEARLY_FULL = 0.9;

/** What a server says of itself, as far as it decides what survives; absent: it does not say. */
export interface ServerReport {
  readonly version?: string;
  readonly product: 'Redis' | 'Valkey';
  readonly role?: string;
  readonly evictionPolicy?: string;
  /** Bytes; 0: no limit. */
  readonly maxMemory: number;
  readonly usedMemory: number;
  /** Of the machine. */
  readonly systemMemory: number;
  readonly appendOnly?: boolean;
  /** always, everysec or no */
  readonly appendFsync?: string;
  /** When there is a snapshot, as in `3600 1 300 100`; '': never */
  readonly save?: string;
  readonly lastAppendFailed: boolean;
  readonly lastSnapshotFailed: boolean;
}

/**
 * @param info what INFO gives
 * @param config what CONFIG GET gives, by turns; empty when that is not allowed
 */
export function reportOf(info: string, config: readonly string[]): ServerReport {
  const fields = new Map(info.split(/\r?\n/).map((line) => line.split(/:(.*)/s, 2) as [string, string]));
  const settings = new Map(config.flatMap((name, i) => (i % 2 === 0 ? [[name, config[i + 1]]] : [])));
  return {
    version: fields.get('valkey_version') ?? fields.get('redis_version'),
    product: fields.has('valkey_version') ? 'Valkey' : 'Redis',
    role: fields.get('role'),
    evictionPolicy: fields.get('maxmemory_policy'),
    maxMemory: Number(fields.get('maxmemory') ?? 0),
    usedMemory: Number(fields.get('used_memory') ?? 0),
    systemMemory: Number(fields.get('total_system_memory') ?? 0),
    appendOnly: fields.has('aof_enabled') ? fields.get('aof_enabled') === '1' : undefined,
    appendFsync: settings.get('appendfsync'),
    save: settings.get('save'),
    lastAppendFailed: fields.get('aof_last_write_status') === 'err',
    lastSnapshotFailed: fields.get('rdb_last_bgsave_status') === 'err',
  };
}

/** In one line. */
export function describeServer(report: ServerReport): string {
  const { product, version = 'of unknown version', evictionPolicy = 'unknown', usedMemory, maxMemory } = report;
  const limit = maxMemory > 0 ? ` of ${megabytes(maxMemory)} MB` : ', no maxmemory';
  const memory = `${megabytes(usedMemory)} MB used${limit}`;
  return `${product} ${version}; ${persistenceOf(report)}; maxmemory-policy ${evictionPolicy}; ${memory}`;
}

/**
 * What an operator should change.
 * @throws SessionsConfigurationError for a server that is too old, or that throws sessions away
 * @throws StoreUnavailableError for a replica: perhaps it is promoted soon
 */
export function judgeServer(report: ServerReport): string[] {
  refuseServer(report);
  const { evictionPolicy = '', usedMemory, maxMemory, systemMemory } = report;
  const warnings: string[] = [];
  if (evictionPolicy.startsWith('allkeys')) {
    warnings.push(
      `maxmemory-policy is ${evictionPolicy}: as soon as a maxmemory is set, sessions and turns are thrown away when it is reached. Set it to noeviction.`,
    );
  }
  if (evictionPolicy.startsWith('volatile')) {
    warnings.push(
      `maxmemory-policy is ${evictionPolicy}: when memory is full, state documents with a TTL go before their time. Set it to noeviction.`,
    );
  }
  if (report.appendOnly === false) {
    const kept = report.save === '' ? 'everything' : 'what was written since the last snapshot';
    warnings.push(
      `appendonly is off: ${kept} is lost when the server stops. Set it to yes, see docs/stores/redis.md for what survives.`,
    );
  }
  if (report.appendOnly && report.appendFsync === 'no') {
    warnings.push(
      'appendfsync is no: what the operating system had not written, some 30 seconds, is lost with the machine.',
    );
  }
  if (report.lastAppendFailed) warnings.push('the last write of the append-only file failed; look at its disk.');
  if (report.lastSnapshotFailed) {
    warnings.push('the last snapshot failed, so the server may refuse to write; look at its disk and memory.');
  }
  const limit = maxMemory > 0 ? maxMemory : systemMemory;
  if (limit > 0 && usedMemory >= NEARLY_FULL * limit) {
    warnings.push(
      `${megabytes(usedMemory)} of ${megabytes(limit)} MB of memory are used; when it is full, turns are refused.`,
    );
  }
  return warnings;
}

function refuseServer({ product, version, role, evictionPolicy = '', maxMemory }: ServerReport): void {
  if (product === 'Redis' && version !== undefined && Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new SessionsConfigurationError(
      `redisAdapter: the server is Redis ${version}; ${OLDEST_MAJOR} or newer is needed.`,
    );
  }
  if (evictionPolicy.startsWith('allkeys') && maxMemory > 0) {
    throw new SessionsConfigurationError(
      `redisAdapter: the server's maxmemory-policy is ${evictionPolicy}, so it throws sessions and turns away when its ` +
        'memory is full. Set it to noeviction, or use a server of its own.',
    );
  }
  if (role === 'slave') {
    throw new StoreUnavailableError('The Redis store is a replica, which takes no writes: connect to its primary.');
  }
}

function persistenceOf({ appendOnly, appendFsync = 'unknown', save }: ServerReport): string {
  const snapshots = save === undefined ? 'snapshots unknown' : save === '' ? 'no snapshots' : `snapshots at ${save}`;
  if (appendOnly === undefined) return 'persistence unknown';
  return appendOnly ? `appendonly with appendfsync ${appendFsync}, ${snapshots}` : `no appendonly, ${snapshots}`;
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(bytes < 10 * 1024 * 1024 ? 1 : 0);
}
