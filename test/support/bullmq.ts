import { randomUUID } from 'node:crypto';
import { createPostgresBackend } from 'bullmq';
import { type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { describePostgres, describeRedis, POSTGRES, REDIS, type TestServer } from './servers.js';

/** The same tests on every server that BullMQ works with. */
export function describeBullmqServers(title: string, tests: (server: TestServer) => void): void {
  describePostgres(`${title}: ${POSTGRES.name}`, () => tests(POSTGRES));
  describeRedis(`${title}: ${REDIS.name}`, () => tests(REDIS));
}

/** A queue of a test's own, as JSON: what has `connection.schema` needs BullMQ's PostgreSQL backend. */
export function placeOfRings({ type, url }: TestServer): object {
  if (type === 'redis') return { connection: { url }, prefix: `{${randomUUID()}}` };
  return { connection: { connectionString: url, schema: 'rings', migrate: true }, name: randomUUID() };
}

/** What opens a queue of a test's own, in as many processes as it likes. */
export function ringsOn(server: TestServer, place = placeOfRings(server)): BullmqQueueOptions {
  const backend = server.type === 'redis' ? {} : { backendFactory: createPostgresBackend };
  return { ...place, ...backend } as unknown as BullmqQueueOptions;
}
