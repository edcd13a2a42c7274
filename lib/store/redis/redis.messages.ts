/** The refusals and warnings of `redisAdapter` about its options, its client and the server. */
export const redisMessages = {
  wrongUrl: (received: string): string =>
    `redisAdapter: url must be a string such as redis://localhost:6379. Received: ${received}.`,

  wrongKeyPrefix: (received: string): string =>
    `redisAdapter: keyPrefix must be 1 to 100 letters, digits or the characters . _ : - only. Received: ${received}.`,

  wrongOperationTimeout: (longest: number, received: string): string =>
    `redisAdapter: operationTimeoutMs must be a number of milliseconds, 1 to ${longest}. Received: ${received}.`,

  /** @param server ` at ` and its address, or nothing */
  connectionRejected: (server: string, why: string): string =>
    `redisAdapter: The server${server} rejects the connection: ${why} Check the user and the password of the URL.`,

  /** @param server as for `connectionRejected` */
  notReached: (server: string, why: string): string =>
    `The Redis store${server} could not be reached: ${why.replace(/\.?\s*$/, '')}. ` +
    'Check that the server runs and accepts connections.',

  changedReplies: (sent: string, read: string): string =>
    `redisAdapter: the ioredis client changes replies: a script returned ${sent} and the client read ` +
    `${read}. Remove the option stringNumbers, and transformers of EVALSHA that Command.setReplyTransformer ` +
    'or Command.setArgumentTransformer has set, or pass url instead of client.',

  /** @param base the beginning of all keys */
  missingPermissions: (permissions: readonly string[], base: string): string =>
    'redisAdapter: the Redis user lacks permissions. ' +
    `Allow ${permissions.join(' ')} ~${base}* &${base}* with ACL SETUSER.`,

  tooOld: (version: string, oldest: number): string =>
    `redisAdapter: the server is Redis ${version}. It must be ${oldest} or newer.`,

  evictsSessions: (policy: string): string =>
    `redisAdapter: the server's maxmemory-policy is ${policy}, so it deletes sessions and turns when its ` +
    'memory is full. Set it to noeviction, or use a separate server.',

  replica: (): string => 'The Redis store is a replica, which rejects writes. Connect to its primary.',

  valuesTooSmall: (limit: number, needed: number): string =>
    `redisAdapter: the server's proto-max-bulk-len is ${limit}. It must be ${needed} or more, twice the largest of ` +
    'turns.maxStepBytes, turns.maxReplyBytes and turns.maxInputBytes. Raise it with CONFIG SET, or lower these ' +
    'options.',

  mayEvictSessions: (policy: string): string =>
    `maxmemory-policy is ${policy}: if maxmemory is set, sessions and turns are evicted when it is reached. ` +
    'Set it to noeviction.',

  mayEvictDocuments: (policy: string): string =>
    `maxmemory-policy is ${policy}: when memory is full, state documents with a TTL are evicted early. ` +
    'Set it to noeviction.',

  noAppendOnly: (hasSnapshots: boolean): string =>
    `appendonly is off: ${hasSnapshots ? 'all data since the last snapshot' : 'everything'} is lost when the server ` +
    'stops. Set it to yes. See docs/stores/redis.md.',

  noSync: (): string => 'appendfsync is no: if the machine crashes, about the last 30 seconds of writes are lost.',

  appendFailed: (): string => 'the last write to the append-only file failed. Check its disk.',

  snapshotFailed: (): string => 'the last snapshot failed, so the server may reject writes. Check its disk and memory.',

  /** @param used in megabytes */
  nearlyFull: (used: string, limit: string): string =>
    `${used} of ${limit} MB of memory are used. When memory is full, new turns are rejected.`,
};
