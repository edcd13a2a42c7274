import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { redisMessages } from './redis.messages.js';

const OLDEST_MAJOR = 7;
/** The share of used memory from which the adapter warns. */
const NEARLY_FULL = 0.9;

/** The settings of a server that affect durability. A field is absent if the server does not report it. */
export interface ServerReport {
  readonly version?: string;
  readonly product: 'Redis' | 'Valkey';
  readonly role?: string;
  readonly evictionPolicy?: string;
  /** In bytes. 0 means no limit. */
  readonly maxMemory: number;
  readonly usedMemory: number;
  /** The memory of the machine, in bytes. */
  readonly systemMemory: number;
  readonly appendOnly?: boolean;
  /** `always`, `everysec` or `no`. */
  readonly appendFsync?: string;
  /** The snapshot schedule, such as `3600 1 300 100`. An empty string means no snapshots. */
  readonly save?: string;
  /** `proto-max-bulk-len`: the largest value in bytes. */
  readonly maxValueBytes?: number;
  readonly lastAppendFailed: boolean;
  readonly lastSnapshotFailed: boolean;
}

/**
 * @param info the reply to INFO
 * @param config the reply to CONFIG GET: alternating names and values. Empty if the command is not allowed
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
    maxValueBytes: settings.has('proto-max-bulk-len') ? Number(settings.get('proto-max-bulk-len')) : undefined,
    lastAppendFailed: fields.get('aof_last_write_status') === 'err',
    lastSnapshotFailed: fields.get('rdb_last_bgsave_status') === 'err',
  };
}

export function describeServer(report: ServerReport): string {
  const { product, version = 'of unknown version', evictionPolicy = 'unknown', usedMemory, maxMemory } = report;
  const limit = maxMemory > 0 ? ` of ${megabytes(maxMemory)} MB` : ', no maxmemory';
  const memory = `${megabytes(usedMemory)} MB used${limit}`;
  return `${product} ${version}; ${persistenceOf(report)}; maxmemory-policy ${evictionPolicy}; ${memory}`;
}

/**
 * Returns warnings about settings that an operator should change.
 * @param maxValueBytes the size of the largest value, if it is known
 * @throws SessionsConfigurationError if the server is too old, evicts sessions or rejects the largest values
 * @throws StoreUnavailableError for a replica, because it may be promoted soon
 */
export function judgeServer(report: ServerReport, maxValueBytes = 0): string[] {
  refuseServer(report);
  refuseLimit(report, maxValueBytes);
  const { evictionPolicy = '', usedMemory, maxMemory, systemMemory } = report;
  const warnings: string[] = [];
  if (evictionPolicy.startsWith('allkeys')) {
    warnings.push(redisMessages.mayEvictSessions(evictionPolicy));
  }
  if (evictionPolicy.startsWith('volatile')) {
    warnings.push(redisMessages.mayEvictDocuments(evictionPolicy));
  }
  if (report.appendOnly === false) warnings.push(redisMessages.noAppendOnly(report.save !== ''));
  if (report.appendOnly && report.appendFsync === 'no') warnings.push(redisMessages.noSync());
  if (report.lastAppendFailed) warnings.push(redisMessages.appendFailed());
  if (report.lastSnapshotFailed) warnings.push(redisMessages.snapshotFailed());
  const limit = maxMemory > 0 ? maxMemory : systemMemory;
  if (limit > 0 && usedMemory >= NEARLY_FULL * limit) {
    warnings.push(redisMessages.nearlyFull(megabytes(usedMemory), megabytes(limit)));
  }
  return warnings;
}

function refuseServer({ product, version, role, evictionPolicy = '', maxMemory }: ServerReport): void {
  if (product === 'Redis' && version !== undefined && Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new SessionsConfigurationError(redisMessages.tooOld(version, OLDEST_MAJOR));
  }
  if (evictionPolicy.startsWith('allkeys') && maxMemory > 0) {
    throw new SessionsConfigurationError(redisMessages.evictsSessions(evictionPolicy));
  }
  if (role === 'slave') {
    throw new StoreUnavailableError(redisMessages.replica());
  }
}

function refuseLimit({ maxValueBytes: limit = Infinity }: ServerReport, maxValueBytes: number): void {
  if (limit >= 2 * maxValueBytes) return;
  throw new SessionsConfigurationError(redisMessages.valuesTooSmall(limit, 2 * maxValueBytes));
}

function persistenceOf({ appendOnly, appendFsync = 'unknown', save }: ServerReport): string {
  const snapshots = save === undefined ? 'snapshots unknown' : save === '' ? 'no snapshots' : `snapshots at ${save}`;
  if (appendOnly === undefined) return 'persistence unknown';
  return appendOnly ? `appendonly with appendfsync ${appendFsync}, ${snapshots}` : `no appendonly, ${snapshots}`;
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(bytes < 10 * 1024 * 1024 ? 1 : 0);
}
