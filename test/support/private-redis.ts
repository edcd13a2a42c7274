import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { eventually } from './eventually.js';
import { startRedis } from './services/redis.js';
import { freePort, giveToServer } from './services/server-process.js';

/** A Redis server of a test's own, to set up and to harm. */
export class PrivateRedis {
  private server: { readonly stop: () => Promise<void> } | null = null;

  private constructor(
    readonly url: string,
    /** The test's own connection. */
    readonly client: Redis,
    private readonly folder: string,
    private settings: readonly string[],
  ) {}

  /** @param settings as redis-server takes them; without any nothing is kept */
  static async start(...settings: string[]): Promise<PrivateRedis> {
    const folder = mkdtempSync(join(tmpdir(), 'agent-sessions-redis-'));
    giveToServer(folder);
    const url = `redis://127.0.0.1:${await freePort()}`;
    const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null });
    client.on('error', () => {});
    const redis = new PrivateRedis(url, client, folder, ['--save', '', '--appendonly', 'no', ...settings]);
    await redis.startAgain();
    await client.ping();
    return redis;
  }

  /** A cluster of one node. */
  static async startCluster(): Promise<PrivateRedis> {
    const redis = await PrivateRedis.start('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1');
    await redis.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await eventually(async () => (await redis.client.cluster('INFO')).includes('cluster_state:ok'));
    return redis;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** A store on it. */
  store(options: Partial<RedisAdapterOptions> = {}): SessionsAdapter {
    return redisAdapter(options.client ? options : { url: this.url, ...options });
  }

  /** Starts a server that was killed, with the files that are there, which it may take a while to load. */
  async startAgain(...settings: string[]): Promise<void> {
    this.settings = [...this.settings, ...settings];
    this.server = await startRedis(this.folder, this.port, this.settings);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    const info = await this.client.info('server');
    const closed = once(this.client, 'close');
    process.kill(Number(/process_id:(\d+)/.exec(info)?.[1]), 'SIGKILL');
    await closed;
    await this.server?.stop();
    this.server = null;
  }

  /** How often each command was called by clients and scripts, but for those of this class. */
  async calls(): Promise<Map<string, number>> {
    const stats = await this.client.info('commandstats');
    const counted = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(
      ([, name, calls]) => [name, Number(calls)] as const,
    );
    return new Map(counted.filter(([name]) => !['info', 'config|resetstat'].includes(name)));
  }

  /** Leaves the server with a snapshot that it could not write. */
  async failToSnapshot(): Promise<void> {
    chmodSync(this.folder, 0o500);
    await this.client.bgsave();
    await eventually(async () => (await this.client.info('persistence')).includes('rdb_last_bgsave_status:err'));
    chmodSync(this.folder, 0o700);
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.server?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
