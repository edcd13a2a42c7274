import { SessionsError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';
import { type FailureKind, kinds, storeError } from '../core/store-failure.js';

/** Error codes that Redis returns before it runs a script, so that nothing was written. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...['OOM', 'MISCONF', 'READONLY', 'NOREPLICAS', 'MASTERDOWN', 'LOADING', 'BUSY'],
  ...['NOAUTH', 'NOPERM', 'NOSCRIPT'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'],
]);

/** How answers of Redis are handled (FIX-61), by the beginning of their message. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  ...kinds('outage', 'OOM ', 'MISCONF ', 'READONLY ', 'NOREPLICAS ', 'MASTERDOWN ', 'LOADING ', 'BUSY ', 'NOSCRIPT '),
  ...kinds('outage', 'MOVED ', 'ASK ', 'TRYAGAIN ', 'CLUSTERDOWN ', 'UNBLOCKED ', 'ERR max number of clients'),
  ...kinds('deployment', 'NOPERM ', 'NOAUTH ', 'WRONGPASS ', 'DENIED ', 'CROSSSLOT ', 'ERR unknown command'),
  // The same inside a script, by Redis 7.0 and by later versions
  ...kinds('deployment', "ERR The user executing the script can't run", 'ERR ACL failure', 'ERR Unknown Redis command'),
  ...kinds('value', 'ERR string exceeds maximum allowed size', 'ERR Protocol error: invalid bulk length'),
};

const CURES: Readonly<Partial<Record<FailureKind, string>>> = {
  deployment: 'Allow the user the commands, keys and channels that docs/stores/redis.md lists.',
};

/** A value is larger than `proto-max-bulk-len`. It was not sent, because the server would close the connection. */
export class BulkTooLargeError extends Error {
  constructor(bytes: number, maxBytes: number) {
    super(`A value of ${bytes} bytes is larger than proto-max-bulk-len (${maxBytes}).`);
  }
}

/** Returns the code of a Redis error, such as `OOM`, or '' if Redis did not answer. */
function codeOf(error: unknown): string {
  return isAnswer(error) ? (/^[A-Z]+(?= )/.exec(error.message)?.[0] ?? '') : '';
}

function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

export function isUnknownScript(error: unknown): boolean {
  return codeOf(error) === 'NOSCRIPT';
}

/** Returns whether the user may not call the command, or the server does not have it. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === 'NOPERM' || (error instanceof Error && error.message.startsWith('ERR unknown command'));
}

/** Returns whether the server rejects the user or the password. */
export function isRefused(error: unknown): boolean {
  return ['WRONGPASS', 'NOAUTH', 'NOPERM'].includes(codeOf(error));
}

/** Returns whether the server is read-only. After a failover, a new connection may reach the primary. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === 'READONLY';
}

/**
 * Returns typed errors unchanged, and converts errors of Redis or its client to the typed error for their kind.
 * @param writes whether a write was sent
 */
export function asStoreError(error: unknown, writes: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const kind = kindOf(error);
  return storeError({
    store: 'Redis',
    kind,
    detail: detailOf(error),
    cure: CURES[kind],
    cause: error,
    maybeApplied: writes && !REFUSALS.has(codeOf(error)),
  });
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof BulkTooLargeError) return 'value';
  if (!isAnswer(error)) return 'outage';
  return Object.entries(KINDS).find(([start]) => error.message.startsWith(start))?.[1] ?? 'unknown';
}

/** Messages with a code come from the server and contain no user data. */
function detailOf(error: unknown): string {
  const isKnown = error instanceof DeadlineError || error instanceof BulkTooLargeError || codeOf(error) !== '';
  return isKnown && error instanceof Error ? `: ${error.message.replace(/\.?\s*$/, '')}` : '';
}
