import { Socket } from 'node:net';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { postgres } from '../test/support/services/postgres.js';
import { startPrivateService } from '../test/support/services/services.js';
import { CountingMeter } from './counting-meter.js';
import { fillPostgres } from './fill-postgres.js';
import { type Population } from './population.js';
import { countSocket, traffic } from './counted-sockets.js';
import { type OpenStore, type StoreServer } from './store-server.js';

const PAGE_BYTES = 8192;

/** A private server, with a database per store. */
export async function openPostgresServer(): Promise<StoreServer> {
  const { url, stop } = await startPrivateService(postgres);
  const admin = await connect(url);
  const [{ version }] = await admin.query<{ version: string }[]>("SELECT current_setting('server_version') AS version");
  return {
    version: `PostgreSQL ${version.split(' ')[0]}, fsync = off, shared_buffers = 128MB`,
    address: url,
    open: async (population) => {
      const name = `bench_${population.count}`;
      await admin.query(`CREATE DATABASE ${name}`);
      return openDatabase(url.replace(/\/postgres$/, `/${name}`), population);
    },
    close: async () => {
      await admin.destroy();
      await stop();
    },
  };
}

async function openDatabase(url: string, population: Population): Promise<OpenStore> {
  const dataSource = await connect(url);
  const adapter = typeormAdapter({ dataSource, migrationsRun: true });
  await adapter.init?.();
  if (population.count > 0) await fillPostgres(dataSource, population);
  return {
    adapter,
    meter: new CountingMeter(() => counters(dataSource)),
    tidy: () => dataSource.query('VACUUM'),
    close: async () => {
      await adapter.close?.();
      await dataSource.destroy();
    },
  };
}

async function connect(url: string): Promise<DataSource> {
  // One connection listens for notifications; the other runs all statements, so its counters cover all work.
  const extra = { stream: () => countSocket(new Socket()) };
  const dataSource = new DataSource({ type: 'postgres', url, poolSize: 2, extra });
  return dataSource.initialize();
}

async function counters(dataSource: DataSource): Promise<Record<string, number>> {
  // PostgreSQL reports a connection's counters at the end of a statement, on request.
  await dataSource.query('SELECT pg_stat_force_next_flush()');
  const [{ pages, log }] = await dataSource.query<{ pages: string; log: string }[]>(
    `SELECT pg_current_wal_insert_lsn() - '0/0' AS log, (
       SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
         + coalesce(toast_blks_read + toast_blks_hit, 0) + coalesce(tidx_blks_read + tidx_blks_hit, 0))
       FROM pg_statio_user_tables) AS pages`,
  );
  const { received, sent } = traffic();
  return {
    'bytes read': Number(pages) * PAGE_BYTES,
    'bytes written': Number(log),
    'bytes received by the client': received,
    'bytes sent by the client': sent,
  };
}
