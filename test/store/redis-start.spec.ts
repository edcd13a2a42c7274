import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { PrivateRedis } from '../support/private-redis.js';
import { describeRedis } from '../support/servers.js';
import { useEverything } from '../support/use-everything.js';

const SAFE = ['--appendonly', 'yes', '--appendfsync', 'always'];

describeRedis('the start of a Redis store', () => {
  let redis: PrivateRedis;
  let lines: string[];

  beforeEach(() => {
    lines = [];
    const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`);
    Logger.overrideLogger({ log: note('log'), warn: note('warn'), error: note('error') });
  });

  afterEach(() => redis.stop());

  it('NST-05 logs the persistence of the server in one line, without a warning if all data survives', async () => {
    await start(...SAFE, '--save', '3600 1 300 100', '--maxmemory', '256mb');

    expect(lines).toEqual([
      expect.stringMatching(
        /^log (Redis|Valkey) \d+\.\d+\.\d+; appendonly with appendfsync always, snapshots at 3600 1 300 100; maxmemory-policy noeviction; \d\.\d MB used of 256 MB\.$/,
      ),
    ]);
  });

  it.each<[string, string[], RegExp]>([
    ['persistence is off', [], /appendonly is off: everything is lost when the server stops/],
    ['only snapshots are saved', ['--save', '3600 1'], /appendonly is off: all data since the last snapshot is lost/],
    ['appendfsync is no', [...SAFE, '--appendfsync', 'no'], /appendfsync is no: if the machine crashes, .* are lost/],
    [
      'documents may be evicted',
      [...SAFE, '--maxmemory', '256mb', '--maxmemory-policy', 'volatile-lru'],
      /maxmemory-policy is volatile-lru: when memory is full, state documents with a TTL are evicted early/,
    ],
    [
      'everything may be evicted as soon as there is a limit',
      [...SAFE, '--maxmemory-policy', 'allkeys-lfu'],
      /maxmemory-policy is allkeys-lfu: if maxmemory is set/,
    ],
    ['memory is nearly full', [...SAFE, '--maxmemory', '1mb'], /1\.\d of 1\.0 MB of memory are used/],
  ])('NST-05 warns once when %s', async (_, settings, warning) => {
    await start(...settings);

    expect(lines.filter((line) => line.startsWith('warn'))).toEqual([expect.stringMatching(warning)]);
  });

  it('NST-05 warns once when the server is a cluster node and the client is not a cluster client', async () => {
    redis = await PrivateRedis.startCluster();
    await open();

    expect(lines.filter((line) => line.includes('cluster'))).toEqual([
      expect.stringMatching(/^warn Redis: the server is a node of a cluster\. Pass an ioredis Cluster as client/),
    ]);
  });

  it('NST-05 warns about a failed snapshot', async () => {
    redis = await PrivateRedis.start(...SAFE);
    await redis.failToSnapshot();
    await open();

    expect(lines).toContainEqual(expect.stringMatching(/^warn Redis: the last snapshot failed/));
  });

  it('NST-05 rejects a server that may evict sessions', async () => {
    redis = await PrivateRedis.start('--maxmemory', '256mb', '--maxmemory-policy', 'allkeys-lru');
    const store = redis.store();
    await expect(store.init?.()).rejects.toThrow(SessionsConfigurationError);
    await expect(store.init?.()).rejects.toThrow(/maxmemory-policy is allkeys-lru.*Set it to noeviction/);
    // No connection remains open.
    await eventually(async () => ((await redis.client.client('LIST')) as string).trim().split('\n').length === 1);
  });

  it('NST-05 rejects a replica, and starts when it is promoted', async () => {
    redis = await PrivateRedis.start('--replicaof', '127.0.0.1 1');
    await expect(open()).rejects.toThrow(StoreUnavailableError);
    await expect(open()).rejects.toThrow('is a replica, which rejects writes. Connect to its primary');

    await redis.client.call('REPLICAOF', 'NO', 'ONE');
    await expect(open()).resolves.toBeUndefined();
  });

  it('NST-05 reports why a password was rejected', async () => {
    redis = await PrivateRedis.start();
    await redis.client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '+@all', '~*', '&*');
    const wrong = redis.store({ url: withUser(redis.url, 'app', 'wrong') });
    await expect(wrong.init?.()).rejects.toThrow(SessionsConfigurationError);
    await expect(wrong.init?.()).rejects.toThrow(/rejects the connection: WRONGPASS/);
    await redis.client.config('SET', 'requirepass', 'secret');
    await expect(open()).rejects.toThrow(/NOAUTH/);
  });

  it('NST-05 needs only the permissions in docs/stores/redis.md', async () => {
    redis = await PrivateRedis.start();
    await redis.client.call('ACL', 'SETUSER', 'app', ...SUFFICIENT);
    const store = redis.store({ url: withUser(redis.url, 'app', 'secret') });
    await store.init?.();
    await useEverything(store);
    await store.ping();
    await store.close?.();

    // ioredis works without it, even if Redis supports it.
    const refused = ((await redis.client.call('ACL', 'LOG')) as string[][]).filter(
      (entry) => !entry.includes('client|setinfo'),
    );
    expect(refused).toEqual([]);
  });

  it.each([
    ['a command that scripts call', '-zadd', /Allow \+zadd ~/],
    ['the channel of changes', 'resetchannels', /Allow \+publish ~/],
    ['our keys', 'resetkeys', /NOPERM this user has no permissions to access one of the keys/],
    ['scripts', '-evalsha', /Allow \+evalsha ~/],
  ])('NST-05 reports the missing permission of a user without %s', async (_, rule, complaint) => {
    redis = await PrivateRedis.start();
    await redis.client.call('ACL', 'SETUSER', 'app', ...SUFFICIENT, rule);
    const store = redis.store({ url: withUser(redis.url, 'app', 'secret') });

    await expect(store.init?.()).rejects.toThrow(complaint);
  });

  it('NST-05 starts without CONFIG and INFO, and logs that the persistence is unknown', async () => {
    redis = await PrivateRedis.start();
    await redis.client.call('ACL', 'SETUSER', 'app', ...SUFFICIENT, '-config', '-info');
    const client = new Redis(withUser(redis.url, 'app', 'secret'), { enableReadyCheck: false });
    client.on('error', () => {});
    const store = redis.store({ client });
    await store.init?.();
    await store.close?.();
    client.disconnect();

    expect(lines).toEqual([
      expect.stringMatching(
        /^warn Redis: the user may not call INFO, so persistence and eviction settings are unknown/,
      ),
    ]);
  });

  async function start(...settings: string[]): Promise<void> {
    redis = await PrivateRedis.start(...settings);
    await open();
  }

  async function open(): Promise<void> {
    const store = redis.store();
    await store.init?.();
    await store.close?.();
  }
});

/** The rules in docs/stores/redis.md for the user `app` with the password `secret`. */
const SUFFICIENT = (/ACL SETUSER app (.*?)```/s.exec(readFileSync('docs/stores/redis.md', 'utf8'))?.[1] ?? '')
  .trim()
  .split(/\s+/);

function withUser(url: string, name: string, password: string): string {
  const own = new URL(url);
  [own.username, own.password] = [name, password];
  return own.href;
}
