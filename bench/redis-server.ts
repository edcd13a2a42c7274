import { Redis } from 'ioredis';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { redis } from '../test/support/services/redis.js';
import { startPrivateService } from '../test/support/services/services.js';
import { CountingMeter } from './counting-meter.js';
import { fillRedis, keyPrefixOf } from './fill-redis.js';
import { countSocket, traffic } from './counted-sockets.js';
import { type StoreServer } from './store-server.js';

/** A private server, with a key prefix per store. */
export async function openRedisServer(): Promise<StoreServer> {
  const { url, stop } = await startPrivateService(redis);
  const client = new Redis(url, { maxRetriesPerRequest: 0 });
  const version = infoField(await client.info('server'), 'redis_version');
  return {
    version: `Redis ${version}, nothing on disk`,
    address: url,
    open: async (population) => {
      if (population.count > 0) await fillRedis(url, population);
      const own = new Redis(url, { maxRetriesPerRequest: 0 });
      own.once('connect', () => countSocket(own.stream));
      const adapter = redisAdapter({ client: own, keyPrefix: keyPrefixOf(population.count) });
      await adapter.init?.();
      return {
        adapter,
        meter: new CountingMeter(() => counters(client)),
        tidy: async () => {},
        close: async () => {
          await adapter.close?.();
          own.disconnect();
        },
      };
    },
    close: async () => {
      client.disconnect();
      await stop();
    },
  };
}

async function counters(client: Redis): Promise<Record<string, number>> {
  const info = await client.info('commandstats');
  const commands = [...info.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  const { received, sent } = traffic();
  return { 'bytes read': received, 'bytes written': sent, 'commands run by the server': commands };
}

function infoField(info: string, field: string): string {
  return new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? 'unknown';
}
