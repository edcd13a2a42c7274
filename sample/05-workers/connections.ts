import { createPostgresBackend } from 'bullmq';
import { type SessionsAdapter, type TurnQueue } from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';

/** The servers that the processes share. The scheme of an address selects the kind of server. */
const { STORE_URL = 'redis://localhost:6379', QUEUE_URL = STORE_URL } = process.env;

export function openStore(): SessionsAdapter {
  if (!isPostgres(STORE_URL)) return redisAdapter({ url: STORE_URL });
  return typeormAdapter({ dataSource: { type: 'postgres', url: STORE_URL }, migrationsRun: true });
}

export function openQueue(): TurnQueue {
  if (!isPostgres(QUEUE_URL)) return bullmqQueue({ connection: { url: QUEUE_URL } });
  const connection = { connectionString: QUEUE_URL, migrate: true };
  return bullmqQueue({ connection, backendFactory: createPostgresBackend });
}

function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}
