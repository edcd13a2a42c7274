/** A server that the test run has started or was given. */
export interface TestServer {
  readonly name: 'postgres' | 'mariadb';
  /** As TypeORM calls it. */
  readonly type: 'postgres' | 'mysql';
  readonly url: string;
}

const [POSTGRES_URL, MYSQL_URL] = [process.env.TEST_POSTGRES_URL, process.env.TEST_MYSQL_URL];

/** All but those that SKIP_SERVICES leaves out. */
export const TEST_SERVERS: readonly TestServer[] = [
  ...(POSTGRES_URL ? [{ name: 'postgres', type: 'postgres', url: POSTGRES_URL } as const] : []),
  ...(MYSQL_URL ? [{ name: 'mariadb', type: 'mysql', url: MYSQL_URL } as const] : []),
];

/** Tests of one server; skipped with it, which the end of the run says in capitals. */
export const describePostgres = POSTGRES_URL ? describe : describe.skip;
export const describeMariadb = MYSQL_URL ? describe : describe.skip;

/** The same tests on every server. */
export function describeServers(title: string, tests: (server: TestServer) => void): void {
  for (const server of TEST_SERVERS) describe(`${title}: ${server.name}`, () => tests(server));
  if (TEST_SERVERS.length === 0) describe.skip(title, () => it('needs a server', () => {}));
}
