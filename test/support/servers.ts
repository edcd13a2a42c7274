/** A server that the test run has started or was given. */
export interface TestServer {
  readonly name: 'postgres' | 'mariadb';
  /** As TypeORM calls it. */
  readonly type: 'postgres' | 'mysql';
  readonly url: string;
}

/** Without an address when SKIP_SERVICES names them. */
export const POSTGRES: TestServer = { name: 'postgres', type: 'postgres', url: process.env.TEST_POSTGRES_URL ?? '' };
export const MARIADB: TestServer = { name: 'mariadb', type: 'mysql', url: process.env.TEST_MYSQL_URL ?? '' };

/** All but those that SKIP_SERVICES leaves out. */
export const TEST_SERVERS: readonly TestServer[] = [POSTGRES, MARIADB].filter(({ url }) => url !== '');

/** Tests of one server; skipped with it, which the end of the run says in capitals. */
export const describePostgres = describeFor(POSTGRES);
export const describeMariadb = describeFor(MARIADB);
export const describeRedis = process.env.TEST_REDIS_URL ? describe : describe.skip;

/** The same tests on every server. */
export function describeServers(title: string, tests: (server: TestServer) => void): void {
  for (const server of [POSTGRES, MARIADB]) describeFor(server)(`${title}: ${server.name}`, () => tests(server));
}

function describeFor({ url }: TestServer): jest.Describe {
  return url === '' ? describe.skip : describe;
}
