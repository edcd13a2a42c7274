import { Redis } from 'ioredis';
import { redis } from '../test/support/services/redis.js';
import { startPrivateService } from '../test/support/services/services.js';
import { type RunningService } from '../test/support/services/service.js';
import { HostProcess } from './host-process.js';
import { type SystemHost } from './system-host.js';

/** One private Redis for all systems, and some processes for each. A system has no open connections between its slices. */
export class Arena {
  private readonly processes = new Map<string, HostProcess<SystemHost>>();
  private readonly client: Redis;

  private constructor(private readonly server: RunningService) {
    this.client = new Redis(server.url);
  }

  static async open(): Promise<Arena> {
    return new Arena(await startPrivateService(redis));
  }

  get url(): string {
    return this.server.url;
  }

  /** Returns the same process every time, so that it is warm. */
  process(name: string): HostProcess<SystemHost> {
    const process = this.processes.get(name) ?? new HostProcess<SystemHost>('./system-program.js');
    this.processes.set(name, process);
    return process;
  }

  async clear(): Promise<void> {
    await this.client.flushall();
  }

  /** Returns the number of script calls so far. */
  async scriptCalls(): Promise<number> {
    const info = await this.client.info('commandstats');
    return [...info.matchAll(/cmdstat_eval\w*:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  }

  async close(): Promise<void> {
    await Promise.all([...this.processes.values()].map((process) => process.stop()));
    this.client.disconnect();
    await this.server.stop();
  }
}
