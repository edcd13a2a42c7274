import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { nodeProcess } from './child-process.js';
import { eventually } from './eventually.js';

const MAIN = join(process.cwd(), 'build/sample/01-support-desk/main.js');

/** An answer over HTTP: the body is parsed when it is JSON. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Text is sent as it is, anything else as JSON. */
  readonly body?: unknown;
}

/** The support desk as a process of its own, started the way its users start it. */
export class SampleProcess {
  private readonly exit: Promise<ExitStatus>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly printed: { text: string },
  ) {
    this.exit = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  }

  /** @param database the path of the SQLite file @param port default: a free one */
  static async start(database: string, port = 0): Promise<SampleProcess> {
    const child = nodeProcess(MAIN, { PORT: String(port), SESSIONS_DB: database });
    const printed = { text: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (printed.text += text));
    }
    const sample = new SampleProcess(child, printed);
    const hasStarted = (): boolean => {
      if (child.exitCode !== null) throw new Error(`The sample ended:\n${printed.text}`);
      return sample.address !== undefined;
    };
    await eventually(hasStarted, { limitMs: 60_000, what: 'that the sample has started' });
    return sample;
  }

  /** All that it wrote so far. */
  get output(): string {
    return this.printed.text;
  }

  /** As it printed it. */
  get url(): string {
    if (!this.address) throw new Error(`The sample printed no address:\n${this.output}`);
    return this.address;
  }

  /** The lines for the shell that it printed. */
  get curlLines(): string[] {
    return this.output.split('\n').filter((line) => line.includes('curl '));
  }

  /** Sends a signal to this process and waits for its end. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<ExitStatus> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.exit;
  }

  async ask(path: string, { method = 'GET', headers = {}, body }: AskOptions = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
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
