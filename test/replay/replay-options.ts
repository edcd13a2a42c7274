import { oneOf, parseArguments, toCount, UsageError } from '../support/command-line.js';

export const USAGE = `Plays recorded conversations through the module and compares what it stored with the record.

  npm run replay -- FILE [options]

FILE is JSON Lines, a conversation a line: { "id", "messages": [...] } with messages as OpenAI's chat API has them.

  --sessions N     only the first N conversations
  --kill-every N   kill a worker process (SIGKILL) after every N settled turns and start it again
  --adapter NAME   sqlite (default), memory, postgres, mysql or redis; a server is started for it, unless
                   TEST_POSTGRES_URL, TEST_MYSQL_URL or TEST_REDIS_URL names one
  --queue NAME     in-process (default): one process does everything; or bullmq: one takes turns, others run them. BullMQ
                   then uses PostgreSQL with --adapter postgres, and Redis with redis or mysql
  --workers N      with --queue bullmq: how many processes run turns (default 1); kills hit one after the other and leave one alive
  --help           this text

Exit code: 0 when every conversation equals its record, 1 when not, 2 for wrong arguments or a file that cannot be used.`;

const ADAPTERS = ['sqlite', 'memory', 'postgres', 'mysql', 'redis'] as const;
export type ReplayAdapter = (typeof ADAPTERS)[number];

const QUEUES = ['in-process', 'bullmq'] as const;
export type ReplayQueue = (typeof QUEUES)[number];

export interface ReplayOptions {
  readonly file: string;
  readonly sessions: number;
  readonly killEvery?: number;
  readonly adapter: ReplayAdapter;
  readonly queue: ReplayQueue;
  readonly workers: number;
}

/** @returns `null` when help is asked for. @throws UsageError */
export function parseOptions(args: string[]): ReplayOptions | null {
  const { values, positionals } = parse(args);
  if (values.help) return null;
  const [file, ...others] = positionals;
  if (file === undefined) throw new UsageError('Which FILE shall be played?');
  if (others.length > 0) throw new UsageError(`One FILE is played at a time; what is ${others.join(' ')}?`);
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
  if (queue === 'in-process' && workers > 1) throw new UsageError('--workers is for --queue bullmq.');
  return { file, adapter, queue, workers, sessions: toCount('--sessions', values.sessions) ?? Infinity, killEvery };
}

function parse(args: string[]) {
  return parseArguments({
    args,
    allowPositionals: true,
    options: {
      sessions: { type: 'string' },
      'kill-every': { type: 'string' },
      adapter: { type: 'string' },
      queue: { type: 'string' },
      workers: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
}
