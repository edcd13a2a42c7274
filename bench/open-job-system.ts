import { openBullmqAndPostgresSaver } from './job-bullmq-langgraph.js';
import { openDbos } from './job-dbos.js';
import {
  openOurMariadb,
  openOurPostgres,
  openOurPostgresAndBullmq,
  openOurSqlite,
  openTypeormTransactions,
} from './job-ours.js';
import { openPQueueAndSqliteSaver } from './job-p-queue-langgraph.js';
import { type JobOptions, type JobSystem } from './job-system.js';

const OPENERS = {
  'ours on PostgreSQL': openOurPostgres,
  'ours on PostgreSQL with BullMQ': openOurPostgresAndBullmq,
  'BullMQ and PostgresSaver': openBullmqAndPostgresSaver,
  DBOS: openDbos,
  'ours on SQLite': openOurSqlite,
  'p-queue and SqliteSaver': openPQueueAndSqliteSaver,
  'ours on MariaDB': openOurMariadb,
  'TypeORM transactions': openTypeormTransactions,
} as const satisfies Record<string, (options: JobOptions) => Promise<JobSystem>>;

export type JobSystemName = keyof typeof OPENERS;

export function openJobSystem(name: JobSystemName, options: JobOptions): Promise<JobSystem> {
  return OPENERS[name](options);
}
