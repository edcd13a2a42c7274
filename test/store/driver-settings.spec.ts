import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { Cluster, Command, Redis } from 'ioredis';
import { SessionsConfigurationError, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { redisAdapter, type RedisClient } from 'nestjs-agent-sessions/redis';
import { sessionsEntities, typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { eventually } from '../support/eventually.js';
import { PrivateRedis } from '../support/private-redis.js';
import { rejection } from '../support/running-application.js';
import { describeMariadb, describePostgres, describeRedis, MARIADB, POSTGRES, REDIS } from '../support/servers.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { useEverything } from '../support/use-everything.js';

const OIDS = { bool: 16, int8: 20, int4: 23, text: 25, json: 114, timestamp: 1114, timestamptz: 1184, jsonb: 3802 };

/** A parser for a type of PostgreSQL. */
type Parser = (text: string) => unknown;

const unparsed: Parser = (text) => text;

/** Parsers that applications set: JSON and numbers as strings, 64-bit integers as bigints. */
const PARSERS: [oid: number, parser: Parser][] = [
  [OIDS.int8, BigInt],
  ...[OIDS.bool, OIDS.int4, OIDS.json, OIDS.jsonb, OIDS.timestamp, OIDS.timestamptz].map((oid): [number, Parser] => [
    oid,
    unparsed,
  ]),
];

/** Settings of mysql2 that change how values are read or written. */
const MYSQL_SETTINGS = {
  typeCast: false,
  rowsAsArray: true,
  nestTables: '_',
  namedPlaceholders: true,
  queryFormat: (sql: string) => `${sql} `,
  supportBigNumbers: false,
  bigNumberStrings: false,
  decimalNumbers: true,
  dateStrings: true,
  jsonStrings: true,
  flags: ['-FOUND_ROWS'],
};

describePostgres('the settings of pg', () => {
  let before: [number, Parser][];

  beforeEach(() => {
    before = Object.values(OIDS).map((oid) => [oid, pg.types.getTypeParser(oid) as Parser]);
  });

  afterEach(() => {
    for (const [oid, parser] of before) pg.types.setTypeParser(oid, parser);
  });

  it('FIX-66 parsers of the process change nothing that the store returns', async () => {
    const usual = await shapesOf(sqlStore(POSTGRES));
    for (const [oid, parser] of PARSERS) pg.types.setTypeParser(oid, parser);
    expect(await shapesOf(sqlStore(POSTGRES))).toEqual(usual);
  });

  it('FIX-66 parsers of the connection, also on the DataSource of the application, change nothing', async () => {
    const usual = await shapesOf(sqlStore(POSTGRES));
    const types = { getTypeParser: () => unparsed };
    expect(await shapesOf(sqlStore(POSTGRES, { extra: { types } }))).toEqual(usual);

    const dataSource = new DataSource({ type: 'postgres', url: POSTGRES.url, poolSize: 3, extra: { types } });
    await dataSource.initialize();
    expect(await shapesOf(typeormAdapter({ dataSource, tablePrefix: prefix(), migrationsRun: true }))).toEqual(usual);
    await dataSource.destroy();
  });

  it('FIX-66 a parser that changes text fails the start', async () => {
    pg.types.setTypeParser(OIDS.text, (text) => (text.startsWith('{') ? text.toUpperCase() : text));
    const store = sqlStore(POSTGRES);
    const error = await rejection(store.init!(), SessionsConfigurationError);
    expect(error.message).toMatch(/must return text as PostgreSQL sends it.*setTypeParser/);
  });

  it('FIX-66 a parser that changes text later is reported as a typed error, not as an error of JSON', async () => {
    const store = sqlStore(POSTGRES);
    await store.init?.();
    pg.types.setTypeParser(OIDS.text, (text) => `${text}!`);
    await rejection(store.leases.acquire('sweep', 'me', 1000), SessionsConfigurationError);
    await store.close?.();
  });

  it('FIX-66 entities read numbers when 64-bit integers are bigints', async () => {
    pg.types.setTypeParser(OIDS.int8, BigInt);
    await readsNumbers({ type: 'postgres', url: POSTGRES.url });
  });
});

describeMariadb('the settings of mysql2', () => {
  it('FIX-66 settings of the pool change nothing that the store returns', async () => {
    const usual = await shapesOf(sqlStore(MARIADB));
    expect(await shapesOf(sqlStore(MARIADB, { extra: MYSQL_SETTINGS }))).toEqual(usual);
  });
});

describe('the settings of better-sqlite3', () => {
  const safeIntegers = (db: BetterSqlite3.Database): void => void db.defaultSafeIntegers(true);

  it('FIX-66 64-bit integers as bigints change nothing that the store returns', async () => {
    const usual = await shapesOf(typeormAdapter({ dataSource: sqliteFile() }));
    const dataSource: DataSourceOptions = { ...sqliteFile(), prepareDatabase: safeIntegers };
    expect(await shapesOf(typeormAdapter({ dataSource }))).toEqual(usual);
  });

  it('FIX-66 entities read numbers when integers are bigints', () =>
    readsNumbers({ ...sqliteFile(), prepareDatabase: safeIntegers }));
});

describeRedis('the settings of ioredis', () => {
  let client: RedisClient;
  let redis: PrivateRedis | null = null;

  afterEach(async () => {
    client.disconnect();
    await redis?.stop();
    redis = null;
  });

  it('FIX-66 integers as strings change nothing that the store returns, and its connection is closed', async () => {
    redis = await PrivateRedis.start();
    const usual = await shapesOf(redisAdapter({ url: REDIS.url, keyPrefix: prefix() }));
    client = new Redis(redis.url, { stringNumbers: true });
    expect(await shapesOf(redisAdapter({ client }))).toEqual(usual);
    expect(await client.incr('counter')).toBe('1');
    // The test's own connection, and the application's.
    await eventually(async () => ((await redis!.client.client('LIST')) as string).trim().split('\n').length === 2);
  });

  it('FIX-66 integers as strings change nothing on a cluster', async () => {
    redis = await PrivateRedis.startCluster();
    const usual = await shapesOf(redisAdapter({ url: REDIS.url, keyPrefix: prefix() }));
    client = new Cluster([redis.url], { redisOptions: { stringNumbers: true } });
    expect(await shapesOf(redisAdapter({ client }))).toEqual(usual);
  });

  it.each(['Reply', 'Argument'] as const)('FIX-66 a %s transformer that changes values fails the start', async (of) => {
    client = new Redis(REDIS.url);
    const changed = (values: unknown): unknown =>
      Array.isArray(values) ? (values as unknown[]).map((value) => (value === 'text' ? 'changed' : value)) : values;
    const transform = (change: (values: never) => unknown): void =>
      of === 'Reply'
        ? Command.setReplyTransformer('evalsha', change as (values: unknown) => unknown)
        : Command.setArgumentTransformer('evalsha', change as never);
    transform(changed);
    try {
      const init = redisAdapter({ client, keyPrefix: prefix() }).init!();
      expect((await rejection(init, SessionsConfigurationError)).message).toMatch(
        /client changes replies.*Transformer/s,
      );
    } finally {
      transform((values) => values);
    }
  });

  it('FIX-66 a reply transformer that is set later is reported as a typed error', async () => {
    client = new Redis(REDIS.url);
    const store = redisAdapter({ client, keyPrefix: prefix() });
    await store.init?.();
    const inStrings = (reply: unknown): unknown => (Array.isArray(reply) ? (reply as unknown[]).map(String) : reply);
    Command.setReplyTransformer('evalsha', inStrings);
    try {
      const error = await rejection(store.leases.acquire('sweep', 'me', 1000), StoreUnavailableError);
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', maybeApplied: true });
      expect(error.message).toContain('unknown refusal: 1');
    } finally {
      Command.setReplyTransformer('evalsha', (reply: unknown) => reply);
      await store.close?.();
    }
  });
});

function prefix(): string {
  return `d${randomBytes(5).toString('hex')}_`;
}

function sqliteFile(): Extract<DataSourceOptions, { readonly type: 'better-sqlite3' }> {
  return { type: 'better-sqlite3', database: join(temporaryFolder(), 'sessions.db') };
}

function sqlStore({ type, url }: typeof POSTGRES, options: object = {}): SessionsAdapter {
  return typeormAdapter({
    dataSource: { type, url, poolSize: 3, ...options },
    tablePrefix: prefix(),
    migrationsRun: true,
  });
}

/** Calls every operation of a store, and returns the types of what each of them returned. Closes the store. */
async function shapesOf(store: SessionsAdapter): Promise<string[]> {
  const shapes: string[] = [];
  await store.init?.();
  try {
    await useEverything({
      sessions: recorded('sessions', store.sessions, shapes),
      turns: recorded('turns', store.turns, shapes),
      events: recorded('events', store.events, shapes),
      checkpoints: recorded('checkpoints', store.checkpoints, shapes),
      conversations: recorded('conversations', store.conversations, shapes),
      state: recorded('state', store.state, shapes),
      leases: recorded('leases', store.leases, shapes),
    });
  } finally {
    await store.close?.();
  }
  return shapes;
}

function recorded<Port extends object>(name: string, port: Port, shapes: string[]): Port {
  return new Proxy(port, {
    get: (_, property) => {
      const method = (port as Record<string | symbol, unknown>)[property];
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        const result: unknown = await method.apply(port, args);
        shapes.push(`${name}.${String(property)}: ${JSON.stringify(shapeOf(result))}`);
        return result;
      };
    },
  });
}

/** Replaces the scalars of a value by their types, and an array by the shape of its first element. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]) => [key, shapeOf(each)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

async function readsNumbers(options: DataSourceOptions): Promise<void> {
  const tablePrefix = prefix();
  const store = typeormAdapter({ dataSource: options, tablePrefix, migrationsRun: true });
  await store.init?.();
  await useEverything(store);
  const dataSource = new DataSource({ ...options, entities: sessionsEntities(tablePrefix) });
  await dataSource.initialize();
  const [session] = await dataSource.getRepository<{ createdAt: unknown }>(`${tablePrefix}session`).find();
  expect(typeof session.createdAt).toBe('number');
  await dataSource.destroy();
  await store.close?.();
}
