import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, chownSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const START_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 50;

/** Stops the server when this process ends in any way, because its end of the pipe closes. Ctrl-C reaches only this process. */
const WITH_ITS_PARENT =
  'trap "" INT; "$@" </dev/null & server=$!; cat >/dev/null; kill -s "$STOP_SIGNAL" $server; wait $server';

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** The file for its output. */
  readonly folder: string;
  readonly stopSignal: 'INT' | 'TERM';
  /** Checks the server. @throws until it answers */
  readonly answers: () => Promise<unknown>;
}

/** Starts a server and waits until it answers. @returns a function that stops it */
export async function startServer(command: ServerCommand): Promise<() => Promise<void>> {
  const { program, args, folder, stopSignal, answers } = command;
  const log = join(folder, 'server.log');
  const server = spawn('sh', ['-c', WITH_ITS_PARENT, 'sh', program, ...args], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, STOP_SIGNAL: stopSignal },
    ...asNobody(),
  });
  for (const output of [server.stdout, server.stderr]) output.on('data', (text: Buffer) => appendFileSync(log, text));
  await untilItAnswers(server, answers, () => `${program} did not start:\n${readFileSync(log, 'utf8')}`);
  return () => stop(server);
}

/** Servers refuse to run as root, so run them as user nobody. */
export function asNobody(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
}

export function giveToServer(folder: string): void {
  const { uid, gid } = asNobody();
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
}

/**
 * Returns a port outside the ephemeral range, so that no connection takes it before the server listens. The port
 * 10,000 above it, where a node of a Redis Cluster listens too, is outside the range as well.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 22_000);
    const socket = createServer();
    try {
      await once(socket.listen(port, '127.0.0.1'), 'listening');
    } catch {
      continue;
    }
    socket.close();
    await once(socket, 'close');
    return port;
  }
}

async function untilItAnswers(
  server: ChildProcess,
  answers: () => Promise<unknown>,
  complaint: () => string,
): Promise<void> {
  const giveUp = Date.now() + START_LIMIT_MS;
  for (;;) {
    try {
      await answers();
      return;
    } catch (error) {
      if (Date.now() > giveUp || server.exitCode !== null) throw new Error(complaint(), { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  // Not 'exit', because output may follow it, and the folder is removed afterwards.
  const closed = once(server, 'close');
  server.stdin?.end();
  await closed;
}
