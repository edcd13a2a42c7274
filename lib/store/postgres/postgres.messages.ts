/** The messages about the server and the driver of the PostgreSQL store. */
export const postgresMessages = {
  poolTooSmall: (size: number): string =>
    'typeormAdapter: dataSource.poolSize must be 2 or more for PostgreSQL, because one connection listens for ' +
    `changes. Received: ${size}.`,

  serverEncodingCure: (): string => "It must be UTF8: create the database with ENCODING 'UTF8' TEMPLATE template0.",

  clientEncodingCure: (): string =>
    'It must be UTF8: remove client_encoding from the options of the connection and the role.',

  changedText: (received: string): string =>
    'typeormAdapter: pg must return text as PostgreSQL sends it. Expected: JSON. Received: ' +
    `${received}. Remove the parser of text (OID 25) that pg.types.setTypeParser or the option types has set.`,

  missingColumns: (): string =>
    'The PostgreSQL store answered without the requested columns. Check the poolers and proxies before the server.',

  missingFunction: (name: string): string =>
    `The PostgreSQL store needs the function ${name}: the role may not execute it, or it does not exist. ` +
    'Grant EXECUTE, or run the migrations: see docs/stores/postgresql.md.',
};
