/** A server that the test run has started or was given. */
export interface TestServer {
  readonly name: 'postgres' | 'mariadb' | 'redis';
  readonly type: 'postgres' | 'mysql' | 'redis';
  readonly url: string;
}

export interface SqlServer extends TestServer {
  /** As TypeORM calls it. */
  readonly type: 'postgres' | 'mysql';
}

/** Without an address when SKIP_SERVICES names them. */
export const POSTGRES: SqlServer = { name: 'postgres', type: 'postgres', url: process.env.TEST_POSTGRES_URL ?? '' };
export const MARIADB: SqlServer = { name: 'mariadb', type: 'mysql', url: process.env.TEST_MYSQL_URL ?? '' };
export const REDIS: TestServer = { name: 'redis', type: 'redis', url: process.env.TEST_REDIS_URL ?? '' };

/** All but those that SKIP_SERVICES leaves out. */
export const SQL_SERVERS: readonly SqlServer[] = [POSTGRES, MARIADB].filter(({ url }) => url !== '');
export const TEST_SERVERS: readonly TestServer[] = [POSTGRES, MARIADB, REDIS].filter(({ url }) => url !== '');

/** Tests of one server; skipped with it, which the end of the run says in capitals. */
export const describePostgres = describeFor(POSTGRES);
export const describeMariadb = describeFor(MARIADB);
export const describeRedis = describeFor(REDIS);

/** The same tests on every server. */
export function describeServers(title: string, tests: (server: TestServer) => void): void {
  for (const server of [POSTGRES, MARIADB, REDIS]) describeFor(server)(`${title}: ${server.name}`, () => tests(server));
}

export function describeSqlServers(title: string, tests: (server: SqlServer) => void): void {
  for (const server of [POSTGRES, MARIADB]) describeFor(server)(`${title}: ${server.name}`, () => tests(server));
}

function describeFor({ url }: TestServer): jest.Describe {
  return url === '' ? describe.skip : describe;
}
