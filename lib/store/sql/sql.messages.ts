/** The refusals that the stores in SQL databases share. */
export const sqlMessages = {
  /** @param table the name of one of the tables */
  migrationsPending: (title: string, table: string, version: number, needed: number): string =>
    `The tables of the ${title} store (${table} and others) are at migration ${version}, and this version ` +
    `of nestjs-agent-sessions needs ${needed}. Run the migrations before the application: ` +
    'npx typeorm migration:run -d FILE, see docs/stores/migrations.md; or let typeormAdapter({ dataSource, migrationsRun: true }) run them.',

  /** @param usableFrom the oldest version that can use the tables */
  schemaTooNew: (title: string, version: number, known: number, usableFrom: number): string =>
    `The tables of the ${title} store are at migration ${version}, which is too new for this version of ` +
    `nestjs-agent-sessions: it knows ${known}, and they can be used from ${usableFrom} on. Install a newer version.`,

  migrationsLocked: (seconds: number): string =>
    `Another process has run the migrations for ${seconds} s. Retry when it is done, or stop that process.`,

  unknownType: (types: readonly string[], received: string): string =>
    `typeormAdapter: dataSource.type must be one of ${types.join(', ')}. Received: ${JSON.stringify(received)}.`,

  /** @param cure what to do instead */
  optionNotAllowed: (option: string, cure: string, received: string): string =>
    `typeormAdapter: dataSource.${option} is not allowed. ${cure} Received: ${received}.`,

  wrongPrefix: (received: string): string =>
    'typeormAdapter: dataSource.entityPrefix and tablePrefix together must be letters, digits and underscores, at ' +
    `most 31. Received: ${JSON.stringify(received)}.`,

  /** @param server ` at ` and its address, or nothing */
  connectionRejected: (title: string, server: string, code: string, reason: string): string =>
    `typeormAdapter: The ${title} server${server} rejects the connection (${code}): ${reason}. ` +
    'Check the user, the password and the database of dataSource.',

  /** @param server as for `connectionRejected` */
  notOpened: (title: string, server: string, why: string): string =>
    `The ${title} store${server} could not be opened${why} Check that the server runs and accepts connections.`,
};
