/**
 * The servers of the application: those in REDIS_URL and DATABASE_URL, or private ones. They run in a separate process that Ctrl-C does not
 * reach, because they must stop last.
 */
import { postgres } from '../../test/support/services/postgres.js';
import { redis, startRedis } from '../../test/support/services/redis.js';
import { freePort } from '../../test/support/services/server-process.js';
import { type Service } from '../../test/support/services/service.js';
import { startService } from '../../test/support/services/services.js';
import { parentEnded, notifyParent } from './parent-process.js';

const SERVICES: Readonly<Record<string, Service>> = {
  redis: {
    ...redis,
    variable: 'REDIS_URL',
    // Durable settings for a store of turns.
    start: async (folder) => startRedis(folder, await freePort(), ['--appendonly', 'yes']),
  },
  postgres: { ...postgres, variable: 'DATABASE_URL' },
};
const names = process.argv.slice(2);
const running = await Promise.all(names.map((name) => startService(SERVICES[name])));
const urls = Object.fromEntries(names.map((name, i) => [name, running[i].url]));

notifyParent(urls);
await parentEnded();
await Promise.all(running.map(({ stop }) => stop()));
