import { oneOf, parseArguments, toCount, UsageError } from '../support/command-line.js';

export const USAGE = `Replays recorded conversations through the module and compares the stored data with the record.

  npm run replay -- FILE [options]

FILE is JSON Lines with one conversation per line: { "id", "messages": [...] }, with messages in the format of OpenAI's chat API.

  --sessions N     only the first N conversations
  --kill-every N   kill a worker process (SIGKILL) after every N settled turns and start it again
  --concurrency N  the number of turns that a process runs at a time (default 32)
  --adapter NAME   sqlite (default), memory, postgres, mysql or redis; a server is started for it, unless
                   TEST_POSTGRES_URL, TEST_MYSQL_URL or TEST_REDIS_URL names one
  --queue NAME     in-process (default): one process does everything; or bullmq: one accepts turns, others run them. BullMQ
                   then uses PostgreSQL with --adapter postgres, and Redis with redis or mysql
  --workers N      with --queue bullmq: the number of processes that run turns (default 1); kills rotate and leave one alive
  --help           this text

Exit code: 0 if every conversation equals its record, 1 if not, 2 for invalid arguments or an unusable file.`;

const ADAPTERS = ['sqlite', 'memory', 'postgres', 'mysql', 'redis'] as const;
export type ReplayAdapter = (typeof ADAPTERS)[number];

const QUEUES = ['in-process', 'bullmq'] as const;
export type ReplayQueue = (typeof QUEUES)[number];

export interface ReplayOptions {
  readonly file: string;
  readonly sessions: number;
  readonly killEvery?: number;
  /** Default: that of the queue. */
  readonly concurrency?: number;
  readonly adapter: ReplayAdapter;
  readonly queue: ReplayQueue;
  readonly workers: number;
}

/** @returns `null` if help is requested. @throws UsageError */
export function parseOptions(args: string[]): ReplayOptions | null {
  const { values, positionals } = parse(args);
  if (values.help) return null;
  const [file, ...others] = positionals;
  if (file === undefined) throw new UsageError('FILE is missing. Pass the file to replay.');
  if (others.length > 0) throw new UsageError(`Only one FILE is allowed. Received also: ${others.join(' ')}.`);
  const adapter = oneOf(ADAPTERS, '--adapter', values.adapter ?? 'sqlite');
  const queue = oneOf(QUEUES, '--queue', values.queue ?? 'in-process');
  const workers = toCount('--workers', values.workers) ?? 1;
  const killEvery = toCount('--kill-every', values['kill-every']);
  if (adapter === 'memory' && killEvery !== undefined) {
    throw new UsageError('--kill-every needs a store that outlives the process, and memory does not.');
  }
  if (queue === 'bullmq' && (adapter === 'memory' || adapter === 'sqlite')) {
    throw new UsageError('--queue bullmq needs a server that processes share: --adapter postgres, mysql or redis.');
  }
  const concurrency = toCount('--concurrency', values.concurrency);
  if (queue === 'in-process' && workers > 1) throw new UsageError('--workers is for --queue bullmq.');
  const sessions = toCount('--sessions', values.sessions) ?? Infinity;
  return { file, adapter, queue, workers, sessions, killEvery, concurrency };
}

function parse(args: string[]) {
  return parseArguments({
    args,
    allowPositionals: true,
    options: {
      sessions: { type: 'string' },
      'kill-every': { type: 'string' },
      concurrency: { type: 'string' },
      adapter: { type: 'string' },
      queue: { type: 'string' },
      workers: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
}
