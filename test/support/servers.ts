/** A server that the test run has started, or that the environment names. */
export interface TestServer {
  readonly name: 'postgres' | 'mariadb' | 'redis';
  readonly type: 'postgres' | 'mysql' | 'redis';
  readonly url: string;
}

export interface SqlServer extends TestServer {
  /** The type in TypeORM. */
  readonly type: 'postgres' | 'mysql';
}

/** All servers; those in SKIP_SERVICES have no address. */
export const POSTGRES: SqlServer = { name: 'postgres', type: 'postgres', url: process.env.TEST_POSTGRES_URL ?? '' };
export const MARIADB: SqlServer = { name: 'mariadb', type: 'mysql', url: process.env.TEST_MYSQL_URL ?? '' };
export const REDIS: TestServer = { name: 'redis', type: 'redis', url: process.env.TEST_REDIS_URL ?? '' };

/** The servers that SKIP_SERVICES does not exclude. */
export const SQL_SERVERS: readonly SqlServer[] = [POSTGRES, MARIADB].filter(({ url }) => url !== '');
export const TEST_SERVERS: readonly TestServer[] = [POSTGRES, MARIADB, REDIS].filter(({ url }) => url !== '');

/** Registers tests of one server. They are skipped with the server; the end of the run reports this in capitals. */
export const describePostgres = describeFor(POSTGRES);
export const describeMariadb = describeFor(MARIADB);
export const describeRedis = describeFor(REDIS);

/** Runs the tests on every server. */
export function describeServers(title: string, tests: (server: TestServer) => void): void {
  for (const server of [POSTGRES, MARIADB, REDIS]) describeFor(server)(`${title}: ${server.name}`, () => tests(server));
}

export function describeSqlServers(title: string, tests: (server: SqlServer) => void): void {
  for (const server of [POSTGRES, MARIADB]) describeFor(server)(`${title}: ${server.name}`, () => tests(server));
}

function describeFor({ url }: TestServer): jest.Describe {
  return url === '' ? describe.skip : describe;
}
