import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { forkProgram, kill } from '../support/child-process.js';

export interface ServerSetup {
  readonly port: number;
  /** The path of the SQLite file. */
  readonly database: string;
  /** The URL of the provider of models. */
  readonly provider: string;
}

const PROGRAM = join(import.meta.dirname, 'server.mjs');
/** The version of Node for which better-sqlite3 is compiled. The tests run on a later one. */
const NODE = process.env.npm_node_execpath;

/** The chat of server.mjs. */
export class ServerProcess {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves when the server accepts connections. */
  static async start(setup: ServerSetup): Promise<ServerProcess> {
    const child = forkProgram(PROGRAM, setup, NODE);
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The server ended with code ${code}.`);
    });
    await Promise.race([once(child, 'message'), ended]);
    ended.catch(() => undefined);
    return new ServerProcess(child);
  }

  /** Sends SIGTERM and resolves when the process has ended. */
  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await ended;
  }

  /** Sends SIGKILL and resolves when the process has ended. */
  kill(): Promise<void> {
    return kill(this.child);
  }
}
