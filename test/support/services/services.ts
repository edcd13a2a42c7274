import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mariadb } from './mariadb.js';
import { postgres } from './postgres.js';
import { redis } from './redis.js';
import { giveToServer } from './server-process.js';
import { type RunningService, type Service } from './service.js';

export const SERVICES: readonly Service[] = [postgres, mariadb, redis];

/** Returns the address of a server: that in the environment, or that of a new private server. */
export async function startService(service: Service): Promise<RunningService> {
  const given = process.env[service.variable];
  return given ? { url: given, stop: async () => {} } : startPrivateService(service);
}

export async function startPrivateService(service: Service): Promise<RunningService> {
  const folder = mkdtempSync(join(tmpdir(), `agent-sessions-${service.name}-`));
  giveToServer(folder);
  const { url, stop } = await service.start(folder);
  return {
    url,
    stop: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the services that SKIP_SERVICES does not name, as in `SKIP_SERVICES=mariadb`. */
export function wantedServices(skip = process.env.SKIP_SERVICES ?? ''): readonly Service[] {
  const skipped = skip.split(',').filter((name) => name !== '');
  for (const name of skipped) {
    if (SERVICES.some((service) => service.name === name)) continue;
    throw new Error(
      `SKIP_SERVICES may contain ${SERVICES.map((service) => service.name).join(', ')}. Received: ${name}.`,
    );
  }
  return SERVICES.filter(({ name }) => !skipped.includes(name));
}
