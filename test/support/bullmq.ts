import { randomUUID } from 'node:crypto';
import { createPostgresBackend } from 'bullmq';
import { type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { describePostgres, describeRedis, POSTGRES, REDIS, type TestServer } from './servers.js';

/** Runs the tests on every server that BullMQ supports. */
export function describeBullmqServers(title: string, tests: (server: TestServer) => void): void {
  describePostgres(`${title}: ${POSTGRES.name}`, () => tests(POSTGRES));
  describeRedis(`${title}: ${REDIS.name}`, () => tests(REDIS));
}

/** The options of a test's queue, as JSON. Options with `connection.schema` need BullMQ's PostgreSQL backend. */
export function placeOfNotifications({ type, url }: TestServer): object {
  if (type === 'redis') return { connection: { url }, prefix: `{${randomUUID()}}` };
  return { connection: { connectionString: url, schema: 'notifications', migrate: true }, name: randomUUID() };
}

/** Returns the options of a new queue, which any number of processes can open. */
export function queueOptionsOn(server: TestServer, place = placeOfNotifications(server)): BullmqQueueOptions {
  const backend = server.type === 'redis' ? {} : { backendFactory: createPostgresBackend };
  return { ...place, ...backend } as unknown as BullmqQueueOptions;
}
