import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCluster, startPostgres } from '../../support/services/postgres.js';
import { startRedis } from '../../support/services/redis.js';
import { freePort, giveToServer } from '../../support/services/server-process.js';
import { type RunningService } from '../../support/services/service.js';

type Start = (folder: string, port: number) => Promise<RunningService>;

/** Settings with which acknowledged writes survive the server's process. */
const KEEPING = { redis: ['--appendonly', 'yes', '--save', ''], postgres: ['fsync=off', 'max_connections=200'] };

const STARTS: Readonly<Record<'redis' | 'postgres', Start>> = {
  redis: (folder, port) => startRedis(folder, port, [...KEEPING.redis, '--pidfile', join(folder, 'redis.pid')]),
  postgres: (folder, port) => startPostgres(folder, port, KEEPING.postgres),
};

/** A server that can be killed and restarted with its data. */
export class CrashingServer {
  url = '';
  private running: RunningService | null = null;

  private constructor(
    private readonly kind: 'redis' | 'postgres',
    private readonly folder: string,
    private readonly port: number,
  ) {}

  static async start(kind: 'redis' | 'postgres'): Promise<CrashingServer> {
    const folder = mkdtempSync(join(tmpdir(), `agent-sessions-${kind}-`));
    giveToServer(folder);
    if (kind === 'postgres') await createCluster(folder);
    const server = new CrashingServer(kind, folder, await freePort());
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.running = await STARTS[this.kind](this.folder, this.port);
    this.url = this.running.url;
  }

  /** Kills the server: Redis by SIGKILL, PostgreSQL by an immediate shutdown. Resolves when it has ended. */
  async crash(): Promise<void> {
    const [file, signal] =
      this.kind === 'redis' ? (['redis.pid', 'SIGKILL'] as const) : (['data/postmaster.pid', 'SIGQUIT'] as const);
    process.kill(parseInt(readFileSync(join(this.folder, file), 'utf8'), 10), signal);
    await this.stop();
  }

  /** Stops the server regularly. */
  async stop(): Promise<void> {
    await this.running?.stop();
    this.running = null;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
