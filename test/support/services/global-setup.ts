import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mariadb } from './mariadb.js';
import { postgres } from './postgres.js';
import { giveToServer } from './server-process.js';
import { type RunningService, type Service } from './service.js';

const SERVICES: readonly Service[] = [postgres, mariadb];

/** What was started, for the end. */
const running: { service: RunningService; folder: string }[] = [];

/**
 * Starts every server that the tests need, on free ports and in temporary folders, and tells the tests of them by
 * environment variables. SKIP_SERVICES=mariadb,postgres leaves some out: their tests are then skipped.
 */
export async function startServices(): Promise<void> {
  const skipped = (process.env.SKIP_SERVICES ?? '').split(',').filter((name) => name !== '');
  for (const name of skipped) {
    if (!SERVICES.some((service) => service.name === name)) throw new Error(`SKIP_SERVICES names ${name}, which is none.`);
  }
  const wanted = SERVICES.filter(({ name, variable }) => !skipped.includes(name) && !process.env[variable]);
  await Promise.all(wanted.map(start));
}

export async function stopServices(): Promise<void> {
  await Promise.all(
    running.splice(0).map(async ({ service, folder }) => {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    }),
  );
}

async function start(service: Service): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), `agent-sessions-${service.name}-`));
  giveToServer(folder);
  const started = await service.start(folder);
  running.push({ service: started, folder });
  process.env[service.variable] = started.url;
}

export default startServices;
