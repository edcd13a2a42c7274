import { type ChildProcessByStdio } from 'node:child_process';
import { join } from 'node:path';
import { type Readable } from 'node:stream';
import { nodeProcess, shellProcess } from './child-process.js';
import { eventually } from './eventually.js';

const SAMPLES = join(process.cwd(), 'build/sample');

/** An HTTP response; a JSON body is parsed. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** A string is sent unchanged, other values as JSON. */
  readonly body?: unknown;
}

export interface SampleOptions {
  /** Its folder. Default `01-support-desk`. */
  readonly sample?: string;
  /** More environment variables. */
  readonly env?: Record<string, string>;
}

type Program = ChildProcessByStdio<null, Readable, Readable>;

/** A sample in a separate process, started like a user starts it. */
export class SampleProcess {
  private readonly exit: Promise<ExitStatus>;

  private constructor(
    private readonly child: Program,
    private readonly printed: { text: string },
  ) {
    this.exit = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  }

  /** @param database the path of the SQLite file @param port default: a free one */
  static async start(
    database: string,
    port = 0,
    { sample: folder = '01-support-desk', env = {} }: SampleOptions = {},
  ): Promise<SampleProcess> {
    const settings = { PORT: String(port), SESSIONS_DB: database, ...env };
    return SampleProcess.open(nodeProcess(join(SAMPLES, folder, 'main.js'), settings));
  }

  /** Runs the command that a sample prints to start it again. */
  static restart({ restartLine }: SampleProcess): Promise<SampleProcess> {
    return SampleProcess.open(shellProcess(restartLine));
  }

  private static async open(child: Program): Promise<SampleProcess> {
    const printed = { text: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (printed.text += text));
    }
    const sample = new SampleProcess(child, printed);
    const hasStarted = (): boolean => {
      if (child.exitCode !== null) throw new Error(`The sample ended. Output:\n${printed.text}`);
      return sample.address !== undefined;
    };
    await eventually(hasStarted, { limitMs: 60_000, what: 'that the sample has started' });
    return sample;
  }

  /** All output so far. */
  get output(): string {
    return this.printed.text;
  }

  /** The address that it printed. */
  get url(): string {
    if (!this.address) throw new Error(`The sample printed no address. Output:\n${this.output}`);
    return this.address;
  }

  /** The shell commands that it printed. */
  get curlLines(): string[] {
    return this.output.split('\n').filter((line) => line.includes('curl '));
  }

  /** The command that it printed to start it again. */
  get restartLine(): string {
    const line = /^ +((?:\S+ )*node \S+\/main\.js)$/m.exec(this.output)?.[1];
    if (line === undefined) throw new Error(`The sample printed no command to start it. Output:\n${this.output}`);
    return line;
  }

  /** Sends a signal to the process and waits for its end. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<ExitStatus> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.exit;
  }

  async ask(path: string, { method = 'GET', headers = {}, body }: AskOptions = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${this.url}${path}`, {
      method,
      // A busy server may close an idle connection while the next request is on its way.
      headers: {
        connection: 'close',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: text }),
    });
    const answer = await response.text();
    try {
      return { status: response.status, body: JSON.parse(answer) as unknown };
    } catch {
      return { status: response.status, body: answer };
    }
  }

  private get address(): string | undefined {
    return /listens on (http:\/\/\S+?)\.\s/.exec(this.printed.text)?.[1];
  }
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: string | null;
}
