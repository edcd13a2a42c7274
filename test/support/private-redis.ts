import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { eventually } from './eventually.js';
import { startRedis } from './services/redis.js';
import { freePort, giveToServer } from './services/server-process.js';

/** A private Redis server that a test can configure and break. */
export class PrivateRedis {
  private server: { readonly stop: () => Promise<void> } | null = null;

  private constructor(
    readonly url: string,
    /** The connection of the test. */
    readonly client: Redis,
    private readonly folder: string,
    private settings: readonly string[],
  ) {}

  /** @param settings arguments of redis-server; without any, persistence is off */
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

  /** Starts a cluster of one node. */
  static async startCluster(): Promise<PrivateRedis> {
    const redis = await PrivateRedis.start('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1');
    await redis.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await eventually(async () => (await redis.client.cluster('INFO')).includes('cluster_state:ok'));
    return redis;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Creates a store on it. */
  store(options: Partial<RedisAdapterOptions> = {}): SessionsAdapter {
    return redisAdapter(options.client ? options : { url: this.url, ...options });
  }

  /** Restarts a killed server with its files, which may take a while to load. */
  async startAgain(...settings: string[]): Promise<void> {
    this.settings = [...this.settings, ...settings];
    this.server = await startRedis(this.folder, this.port, this.settings);
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    const info = await this.client.info('server');
    // Not events.once, because it rejects on the error of a connection that a killed server resets.
    const closed = new Promise<void>((resolve) => this.client.once('close', () => resolve()));
    process.kill(Number(/process_id:(\d+)/.exec(info)?.[1]), 'SIGKILL');
    await closed;
    await this.server?.stop();
    this.server = null;
  }

  /** Returns the number of calls per command by clients and scripts, without those of this class. */
  async calls(): Promise<Map<string, number>> {
    const stats = await this.client.info('commandstats');
    const counted = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(
      ([, name, calls]) => [name, Number(calls)] as const,
    );
    return new Map(counted.filter(([name]) => !['info', 'config|resetstat'].includes(name)));
  }

  /** Makes the server fail to write a snapshot. */
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
