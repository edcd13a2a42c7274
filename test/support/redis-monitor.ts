import { randomUUID } from 'node:crypto';
import { type Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { type PrivateRedis } from './private-redis.js';

export type Command = readonly string[];

/** The commands that a server received in the meantime. */
export interface Asked {
  readonly byClients: readonly Command[];
  readonly byScripts: readonly Command[];
}

/** Records every command that reaches a server. */
export class RedisMonitor {
  private readonly seen: { readonly args: Command; readonly byScript: boolean }[] = [];

  private constructor(
    private readonly redis: PrivateRedis,
    private readonly monitor: Redis,
  ) {}

  static async start(redis: PrivateRedis): Promise<RedisMonitor> {
    const monitor = new RedisMonitor(redis, await redis.client.monitor());
    monitor.monitor.on('monitor', (_time: string, args: string[], source: string) => {
      monitor.seen.push({ args: [args[0].toLowerCase(), ...args.slice(1).map(unescape)], byScript: source === 'lua' });
    });
    return monitor;
  }

  async during(work: () => Promise<unknown>): Promise<Asked> {
    await this.mark();
    this.seen.length = 0;
    await work();
    const mark = await this.mark();
    const asked = this.seen.filter(({ args }) => args[1] !== mark);
    const of = (byScript: boolean): Command[] =>
      asked.filter((one) => one.byScript === byScript).map(({ args }) => args);
    return { byClients: of(false), byScripts: of(true) };
  }

  stop(): void {
    this.monitor.disconnect();
  }

  private async mark(): Promise<string> {
    const mark = randomUUID();
    await this.redis.client.echo(mark);
    await eventually(() => this.seen.some(({ args }) => args[1] === mark));
    return mark;
  }
}

/** MONITOR escapes unprintable characters, as in `\x1f`. */
function unescape(text: string): string {
  return text.replace(/\\x([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}
