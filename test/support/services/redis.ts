import { Redis } from 'ioredis';
import { findProgram, installPackage } from './find-program.js';
import { freePort, startServer } from './server-process.js';
import { type RunningService, type Service } from './service.js';

export const redis: Service = {
  name: 'redis',
  variable: 'TEST_REDIS_URL',
  // Data need not survive a power cut.
  start: async (folder) => startRedis(folder, await freePort(), ['--save', '', '--appendonly', 'no']),
};

/** @param settings arguments of redis-server */
export async function startRedis(folder: string, port: number, settings: readonly string[]): Promise<RunningService> {
  const url = `redis://127.0.0.1:${port}`;
  const stop = await startServer({
    program: findRedis(),
    args: ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...settings],
    folder,
    stopSignal: 'TERM',
    answers: () => ping(url),
  });
  return { url, stop };
}

function findRedis(): string {
  const look = (): string | undefined => findProgram('redis-server') ?? findProgram('valkey-server');
  const found = look();
  if (found) return found;
  installPackage('redis-server');
  const installed = look();
  if (!installed) throw new Error('redis-server was installed, but was not found.');
  return installed;
}

/** Waits until the server has loaded its data. */
async function ping(url: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  client.on('error', () => {});
  await client.connect();
  await client.quit();
}
