import { randomUUID } from 'node:crypto';
import * as bullmq from 'bullmq';
import { type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { describePostgres, describeRedis, POSTGRES, REDIS, TEST_SERVERS, type TestServer } from './servers.js';

/** Whether this is BullMQ 6. BullMQ 5 runs on Redis only. */
export const HAS_BACKENDS = 'createPostgresBackend' in bullmq;

/** The servers that BullMQ supports. */
export const BULLMQ_SERVERS = TEST_SERVERS.filter(
  ({ type }) => type === 'redis' || (type === 'postgres' && HAS_BACKENDS),
);

/** Registers tests of BullMQ on PostgreSQL. */
export const describeBullmqOnPostgres: jest.Describe = HAS_BACKENDS ? describePostgres : describe.skip;

/** Runs the tests on every server that BullMQ supports. */
export function describeBullmqServers(title: string, tests: (server: TestServer) => void): void {
  describeBullmqOnPostgres(`${title}: ${POSTGRES.name}`, () => tests(POSTGRES));
  describeRedis(`${title}: ${REDIS.name}`, () => tests(REDIS));
}

/** The options of a test's queue, as JSON. Options with `connection.schema` need BullMQ's PostgreSQL backend. */
export function placeOfNotifications({ type, url }: TestServer): object {
  if (type === 'redis') return { connection: { url }, prefix: `{${randomUUID()}}` };
  return { connection: { connectionString: url, schema: 'notifications', migrate: true }, name: randomUUID() };
}

/** Returns the options of a new queue, which any number of processes can open. */
export function queueOptionsOn(server: TestServer, place = placeOfNotifications(server)): BullmqQueueOptions {
  const backend = server.type === 'redis' ? {} : { backendFactory: bullmq.createPostgresBackend };
  return { ...place, ...backend } as unknown as BullmqQueueOptions;
}
