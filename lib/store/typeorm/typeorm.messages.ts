/** The refusals of `typeormAdapter`. */
export const typeormMessages = {
  wrongTablePrefix: (received: string): string =>
    'typeormAdapter: tablePrefix must be letters, digits and underscores, at most 31. Received: ' +
    `${JSON.stringify(received)}.`,

  wrongSynchronous: (received: string): string =>
    `typeormAdapter: sqlite.synchronous must be 'FULL' or 'NORMAL'. Received: ${JSON.stringify(received)}.`,

  wrongBusyTimeout: (received: string): string =>
    `typeormAdapter: sqlite.busyTimeoutMs must be a number of milliseconds, 0 or more. Received: ${received}.`,

  notABoolean: (option: string, received: string): string =>
    `typeormAdapter: ${option} must be true or false. Received: ${received}.`,

  wrongOperationTimeout: (longest: number, received: string): string =>
    `typeormAdapter: operationTimeoutMs must be a number of milliseconds, 1 to ${longest}. Received: ${received}.`,

  /** @param what a table, a schema or a column of an entity */
  otherName: (what: string, named: string | undefined, stored: string): string =>
    `typeormAdapter: the DataSource names ${what} ${JSON.stringify(named)}, and the store names it ` +
    `${JSON.stringify(stored)}. Make the namingStrategy of the DataSource keep the names of sessionsEntities(), and ` +
    "pass it the adapter's tablePrefix.",
};
