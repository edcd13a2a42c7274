import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { forkProgram, kill } from './child-process.js';

export interface ServerSetup {
  readonly port: number;
  /** The path of the SQLite file. */
  readonly database: string;
  /** The URL of the provider of models. */
  readonly provider: string;
  /** The version of `ai` that answers. Default 6. */
  readonly version?: 6 | 7;
  /** The option `protocol` of the chat controller. Default 7. */
  readonly protocol?: 6 | 7;
  /** The file to which the tools append each {@link Effect} as a line of JSON. Default: none. */
  readonly effects?: string;
  /**
   * True if the process stores each chunk of an answer by itself, and reports the writes of chats. A chat with the id `before-append-12`
   * stops before the 12th `append`, one with the id `after-append-12` after it: none of its later writes is made. Default false.
   */
  readonly holdsWrites?: boolean;
}

/** The execution of a tool. */
export interface Effect {
  readonly chat: string;
  /** The id of the call. */
  readonly call: string;
  /** The idempotency key. */
  readonly key: string;
}

/** What a process with `holdsWrites` reports. */
export interface WriteReport {
  readonly chat: string;
  /**
   * The name of the stored step or the method of the store, and how often the chat has made this write: `model_call-2`. Absent: the chat has
   * stopped.
   */
  readonly wrote?: string;
}

const PROGRAM = join(import.meta.dirname, 'chat-server.mjs');
/** The version of Node for which better-sqlite3 is compiled. The tests run on a later one. */
const NODE = process.env.npm_node_execpath;

/** The chat of chat-server.mjs. */
export class ServerProcess {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves when the server accepts connections. */
  static async start(setup: ServerSetup, onReport?: (report: WriteReport) => void): Promise<ServerProcess> {
    const child = forkProgram(PROGRAM, setup, NODE);
    child.on('message', (message: 'ready' | WriteReport) => {
      if (message !== 'ready') onReport?.(message);
    });
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
