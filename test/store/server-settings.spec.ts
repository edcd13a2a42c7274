import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  memoryAdapter,
  type SessionsAdapter,
  SessionsConfigurationError,
  type SessionsModuleOptions,
} from 'nestjs-agent-sessions';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { LimitedUser } from '../support/limited-user.js';
import { PrivateRedis } from '../support/private-redis.js';
import { rejection, startApplication } from '../support/running-application.js';
import {
  describeMariadb,
  describePostgres,
  describeRedis,
  describeSqlServers,
  MARIADB,
  POSTGRES,
} from '../support/servers.js';
import { sqliteAdapter, sqliteOptions, temporaryFolder } from '../support/stores.js';

const opened: SessionsAdapter[] = [];

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close?.();
});

async function open(options: TypeormAdapterOptions, limits?: { readonly maxValueBytes: number }): Promise<void> {
  const store = typeormAdapter(options);
  opened.push(store);
  await store.init?.(limits);
}

describeSqlServers('privileges that a user lacks at the start', (server) => {
  let user: LimitedUser;

  beforeAll(async () => {
    user = await LimitedUser.create(server);
  });

  afterAll(() => user.drop());

  it.each(['INSERT', 'UPDATE', 'DELETE'])('FIX-65 stop it: %s on a table', async (privilege) => {
    await user.revoke(privilege, 'message');
    const store = user.store();
    opened.push(store);
    const { message } = await rejection(Promise.resolve(store.init?.()), SessionsConfigurationError);
    expect(message).toMatch(new RegExp(`${user.tablePrefix}message`));
    expect(message).toContain('checkServer: false');

    const unchecked = user.store({ checkServer: false });
    opened.push(unchecked);
    await unchecked.init?.();
    await user.grant(privilege, 'message');
    await store.init?.();
  });

  if (server.type === 'postgres') {
    it('FIX-65 stop it: EXECUTE on a function', async () => {
      const name = `${user.tablePrefix}settle_v1`;
      await user.server.query(`REVOKE EXECUTE ON FUNCTION ${name} FROM PUBLIC`);
      const store = user.store();
      opened.push(store);
      const { message } = await rejection(Promise.resolve(store.init?.()), SessionsConfigurationError);
      expect(message).toContain(name);
      await user.server.query(`GRANT EXECUTE ON FUNCTION ${name} TO PUBLIC`);
      await store.init?.();
    });
  }
});

describePostgres('settings of PostgreSQL', () => {
  it('FIX-65 an encoding without every character stops the start', async () => {
    const name = `latin_${randomBytes(4).toString('hex')}`;
    const server = await new DataSource({ type: 'postgres', url: POSTGRES.url }).initialize();
    await server.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    try {
      const url = new URL(POSTGRES.url);
      url.pathname = `/${name}`;
      const options: TypeormAdapterOptions = { dataSource: { type: 'postgres', url: url.href }, migrationsRun: true };
      const { message } = await rejection(open(options), SessionsConfigurationError);
      expect(message).toMatch(/server_encoding is LATIN1\. It must be UTF8: .*ENCODING 'UTF8'.*checkServer: false/);
      await open({ ...options, checkServer: false });
    } finally {
      for (const store of opened.splice(0)) await store.close?.();
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await server.destroy();
    }
  });

  it('FIX-65 a connection in another encoding stops the start', async () => {
    const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
    const options = { type: 'postgres', url: POSTGRES.url } as const;
    await open({ dataSource: options, tablePrefix, migrationsRun: true });
    // pg connects with UTF8, whatever its options. The pool has one connection, which the store uses again.
    const dataSource = await new DataSource(options).initialize();
    try {
      await dataSource.query("SET client_encoding = 'LATIN1'");
      const { message } = await rejection(open({ dataSource, tablePrefix }), SessionsConfigurationError);
      expect(message).toMatch(/client_encoding is LATIN1\. It must be UTF8: .*checkServer: false/);
    } finally {
      await dataSource.destroy();
    }
  });

  it('FIX-65 DAY-06 a server that is read-only is an outage', async () => {
    const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
    const dataSource = { type: 'postgres', url: POSTGRES.url } as const;
    await open({ dataSource, tablePrefix, migrationsRun: true });
    const readOnly = { ...dataSource, extra: { options: '-c default_transaction_read_only=on' } };
    await expect(open({ dataSource: readOnly, tablePrefix })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      reason: 'outage',
    });
  });
});

describeMariadb('settings of MariaDB', () => {
  it('FIX-65 a packet that is too small stops the start', async () => {
    const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
    const dataSource = { type: 'mysql', url: MARIADB.url } as const;
    await open({ dataSource, tablePrefix, migrationsRun: true });
    const { message } = await rejection(
      open({ dataSource, tablePrefix }, { maxValueBytes: 40_000_000 }),
      SessionsConfigurationError,
    );
    expect(message).toMatch(/max_allowed_packet is 67108864\. It must be 80000000 or more/);

    const application = await new DataSource(dataSource).initialize();
    const refused = open({ dataSource: application, tablePrefix }, { maxValueBytes: 40_000_000 });
    await expect(refused).rejects.toThrow(message);
    await application.destroy();
  });

  it('FIX-65 DAY-06 a user who may not create tables stops the start, without more attempts', async () => {
    const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
    const server = await new DataSource({ type: 'mysql', url: MARIADB.url }).initialize();
    await server.query(`CREATE USER ${tablePrefix}user IDENTIFIED BY 'secret'`);
    await server.query(`GRANT SELECT, INSERT ON *.* TO ${tablePrefix}user`);
    const own = new URL(MARIADB.url);
    [own.username, own.password] = [`${tablePrefix}user`, 'secret'];
    const adapter = typeormAdapter({ dataSource: { type: 'mysql', url: own.href }, tablePrefix, migrationsRun: true });
    try {
      const { message } = await rejection(startApplication({ adapter }), SessionsConfigurationError);
      expect(message).toMatch(/1142 .*CREATE command denied.* Grant the user the privileges/);
    } finally {
      await server.query(`DROP USER ${tablePrefix}user`);
      await server.destroy();
    }
  });

  it.each(['', 'x_'])(
    'FIX-65 FIX-67 a column in another character set stops the start; entityPrefix: "%s"',
    async (entityPrefix) => {
      const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
      const dataSource = { type: 'mysql', url: MARIADB.url, entityPrefix } as const;
      await open({ dataSource, tablePrefix, migrationsRun: true });
      const table = `${entityPrefix}${tablePrefix}message`;
      const server = await new DataSource(dataSource).initialize();
      await server.query(`ALTER TABLE ${table} MODIFY body LONGTEXT CHARACTER SET latin1 NOT NULL`);
      await server.destroy();
      const { message } = await rejection(open({ dataSource, tablePrefix }), SessionsConfigurationError);
      expect(message).toMatch(new RegExp(`${table}\\.body is latin1\\. It must be utf8mb4`));
      await open({ dataSource, tablePrefix, checkServer: false });
    },
  );
});

describeRedis('settings of Redis', () => {
  it('FIX-65 a limit below twice the largest value stops the start', async () => {
    const redis = await PrivateRedis.start('--proto-max-bulk-len', '1mb');
    try {
      const adapter = redis.store();
      const { message } = await rejection(startApplication({ adapter }), SessionsConfigurationError);
      expect(message).toMatch(/proto-max-bulk-len is 1048576\. It must be 8388608 or more/);
    } finally {
      await redis.stop();
    }
  });
});

it.each<NonNullable<SessionsModuleOptions['turns']>>([
  { maxStepBytes: 8_388_608 },
  { maxReplyBytes: 8_388_608 },
  { maxInputBytes: 8_388_608 },
])('FIX-65 the largest limit of values reaches the store: %j', async (turns) => {
  const received: unknown[] = [];
  const init = async (limits: unknown): Promise<void> => void received.push(limits);
  await startApplication({ adapter: { ...memoryAdapter(), init }, turns });
  expect(received).toEqual([{ maxValueBytes: 8_388_608 }]);
});

it('FIX-65 a table that is missing stops the start: sqlite', async () => {
  const file = join(temporaryFolder(), 'sessions.db');
  const store = sqliteAdapter(file);
  await store.init?.();
  await store.close?.();
  const db = new Database(file);
  db.exec('DROP TABLE agent_step');
  db.close();
  const { message } = await rejection(open(sqliteOptions(file)), SessionsConfigurationError);
  expect(message).toContain('no such table: agent_step');
});
