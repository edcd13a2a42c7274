import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Logger } from '@nestjs/common';
import * as bullmq from 'bullmq';
import { memoryAdapter } from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueue, type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { describeBullmqOnPostgres } from '../support/bullmq.js';
import { ClosingPostgres } from '../support/closing-postgres.js';
import { Echo } from '../support/application.js';
import { eventually } from '../support/eventually.js';
import { PrivateRedis } from '../support/private-redis.js';
import { startApplication } from '../support/running-application.js';
import { describeRedis, POSTGRES } from '../support/servers.js';
import { steadyClock } from '../support/steady-clock.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/close-queue.mjs');

let errors: string[] = [];

beforeEach(() => {
  errors = [];
  const nothing = (): void => undefined;
  const error = (message: unknown): void => void errors.push(String(message));
  Logger.overrideLogger({ log: nothing, warn: nothing, error });
});

afterEach(() => {
  Logger.overrideLogger(false);
});

describeRedis('bullmqQueue whose Redis goes away', () => {
  let redis: PrivateRedis;
  const opened: BullmqQueue[] = [];

  beforeEach(async () => {
    redis = await PrivateRedis.start();
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((queue) => queue.close()));
    await redis.stop();
  });

  function open(more: object = { retryStrategy: () => 50 }): BullmqQueue {
    const queue = bullmqQueue({ connection: { url: redis.url, ...more } });
    opened.push(queue);
    return queue;
  }

  it('TRN-21 receives notifications again when it is back, and logs every outage once', async () => {
    const [api, worker] = [open(), open()];
    const heard: string[] = [];
    await worker.process(async (id) => void heard.push(id));
    for (const outage of [1, 2]) {
      await redis.kill();
      await eventually(() => errors.length >= 2 * outage - 1);
      await redis.startAgain();
      await api.notify(`after ${outage}`);
      await eventually(() => heard.includes(`after ${outage}`));
    }
    // One error of the worker per outage. Idle connections of the other queue report none.
    expect(errors.length).toBeLessThanOrEqual(4);
    const place = new URL(redis.url).host;
    expect(new Set(errors)).toEqual(new Set([`The queue agent-sessions at ${place} reported an error; retrying.`]));
  });

  it('TRN-14 TRN-21 closes in a few seconds, despite a notification without an answer', async () => {
    const queue = open();
    let heard = 0;
    await queue.process(async () => void (heard += 1));
    await queue.notify('before');
    await eventually(() => heard === 1);
    await redis.kill();
    const unanswered = queue.notify('after').catch(() => undefined);

    const startedAt = steadyClock.now();
    await queue.close();

    expect(steadyClock.now() - startedAt).toBeLessThan(6000);
    await redis.startAgain();
    await expect(queue.notify('closed')).rejects.toThrow('is closed');
    void unanswered;
  });

  it('TRN-21 recovers from half-open connections without an error from the network', async () => {
    const proxy = await TcpProxy.start(redis.url);
    const queue = open({ url: proxy.url });
    const heard: string[] = [];
    await queue.process(async (id) => void heard.push(id));
    await queue.notify('before');
    await eventually(() => heard.includes('before'));

    proxy.freeze();
    await Promise.all(['one', 'two'].map((id) => queue.notify(id)));

    await eventually(() => heard.includes('one') && heard.includes('two'), { limitMs: 20_000 });
    await queue.ping();
    await queue.close();
    await proxy.stop();
  }, 40_000);

  it('TRN-21 ping fails in a few seconds', async () => {
    const queue = open({});
    await queue.ping();
    await redis.kill();
    await expect(queue.ping()).rejects.toThrow('within 2000 ms');
  });

  it('TRN-21 accepts turns meanwhile, keeps one notification per lane, and runs them when it is back', async () => {
    const adapter = memoryAdapter();
    const work = await startApplication({ adapter, turns: { queue: open() }, orchestrators: [Echo] });
    const api = await startApplication({ adapter, role: 'submit', turns: { queue: open() }, orchestrators: [Echo] });
    const sessionId = await api.session();
    await api.handle(Echo).execute('before', { sessionId });
    await redis.kill();

    const { id } = await api.turns.submit('echo', 'hello', { sessionId });
    expect(await api.turns.get(id)).toMatchObject({ status: 'queued' });
    await redis.startAgain();

    expect(await api.turns.result(id)).toMatchObject({ reply: 'You said: hello' });
    await api.close();
    await work.close();
  });

  it('TRN-21 runs a turn that needs no notification meanwhile', async () => {
    const queue = open();
    const app = await startApplication({ turns: { queue }, orchestrators: [Echo] });
    const sessionId = await app.session();
    await app.handle(Echo).execute('before', { sessionId });
    // After the queue has reported that nothing is waiting.
    const place = await eventually(() => queue.reserve(sessionId));
    place.release();
    await redis.kill();

    expect(await app.handle(Echo).execute('hello', { sessionId })).toMatchObject({ reply: 'You said: hello' });
    await redis.startAgain();
    await app.close();
  });
});

describeRedis('a process with bullmqQueue', () => {
  it.each(['no server listens', 'no server answers'])('TRN-14 exits after close although %s', async (what) => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const closed = once(server, 'close');
    if (what === 'no server listens') server.close();
    const run = promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify({ port })], { timeout: 30_000 });
    await expect(run).resolves.toBeDefined();
    server.close();
    if (what === 'no server listens') await closed;
  });
});

describeBullmqOnPostgres('bullmqQueue on PostgreSQL', () => {
  function options(more: object = {}): BullmqQueueOptions {
    const connection = { connectionString: POSTGRES.url, schema: `rings_${randomUUID().slice(0, 8)}`, ...more };
    return { connection, backendFactory: bullmq.createPostgresBackend } as unknown as BullmqQueueOptions;
  }

  const opened: { readonly close: () => Promise<void> }[] = [];

  afterEach(async () => {
    for (const { close } of opened.splice(0).reverse()) await close();
  });

  /** Queues to close after the test. */
  function open(given: BullmqQueueOptions): BullmqQueue {
    const queue = bullmqQueue(given);
    opened.push({ close: () => queue.close() });
    return queue;
  }

  /** Proxies to stop after the test, once the queues are closed. */
  async function openProxy(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(POSTGRES.url);
    opened.push({ close: () => proxy.stop() });
    return proxy;
  }

  function isNotified(queue: BullmqQueue, sessionId: string): Promise<boolean> {
    return queue.notify(sessionId).then(
      () => true,
      () => false,
    );
  }

  it('TRN-22 checks for stalled notifications without an error', async () => {
    const queue = open(options({ migrate: true }));
    let heard = 0;
    await queue.process(async () => void (heard += 1));
    await queue.notify('s');
    await eventually(() => heard === 1);
    await queue.close();
    expect(errors).toEqual([]);
  });

  it('TRN-22 survives an outage while BullMQ reads its tables', async () => {
    const proxy = await openProxy();
    const queue = open(options({ migrate: true, connectionString: proxy.url }));
    const heard: string[] = [];
    proxy.holdAnswers(/migration/);
    await queue.process(async (id) => void heard.push(id));
    await eventually(() => proxy.withheld > 0);
    proxy.cut();
    await eventually(() => errors.length > 0);
    proxy.restore();
    await queue.notify('s');
    await eventually(() => heard.includes('s'));
  });

  it('TRN-22 survives a server that stops just after BullMQ has connected', async () => {
    const [proxy, closing] = [await openProxy(), await ClosingPostgres.start()];
    opened.push({ close: () => closing.stop() });
    const queue = open(options({ migrate: true, connectionString: proxy.url }));
    const heard: string[] = [];
    await queue.process(async (id) => void heard.push(id));
    await queue.notify('before');
    await eventually(() => heard.includes('before'));

    proxy.leadTo(closing.url);
    proxy.cut();
    proxy.restore();
    await eventually(() => closing.connections >= 3);
    proxy.leadTo(POSTGRES.url);

    await eventually(() => isNotified(queue, 'after'));
    await eventually(() => heard.includes('after'));
  });

  it('TRN-22 notifies again after all connections became half-open without an error', async () => {
    const proxy = await openProxy();
    const { connection, backendFactory } = options({ migrate: true, connectionString: proxy.url });
    const ours = await open({ connection, backendFactory }).queue;
    expect(ours.opts.connection).toMatchObject({ query_timeout: 8_000, idle_in_transaction_session_timeout: 5_000 });
    // Shorter time-outs, because the dead connections of the pool are closed one after the other.
    const queue = open({ connection: { ...(connection as object), query_timeout: 1_500 }, backendFactory });
    await queue.process(async () => undefined);
    await queue.notify('before');

    proxy.freeze();

    await eventually(() => isNotified(queue, 'after'), { limitMs: 20_000 });
  }, 40_000);

  it('TRN-22 starts although another process has a half-open connection since it read the tables', async () => {
    const proxy = await openProxy();
    const { connection, backendFactory } = options({ migrate: true });
    const half = { connection: { ...(connection as object), connectionString: proxy.url }, backendFactory };
    const [lost, queue] = [open(half), open({ connection, backendFactory })];
    proxy.holdAnswers(/pg_advisory_xact_lock/);
    await lost.process(async () => undefined);
    await eventually(() => proxy.withheld > 0);
    proxy.freeze();

    const heard: string[] = [];
    await queue.process(async (id) => void heard.push(id));
    void queue.notify('s');
    await eventually(() => heard.includes('s'), { limitMs: 14_000 });
  }, 40_000);

  it('TRN-22 starts when the tables exist, and logs once that they are missing', async () => {
    const missing = options();
    const queue = open(missing);
    const heard: string[] = [];
    await queue.process(async (id) => void heard.push(id));
    await expect(queue.notify('too early')).rejects.toThrow('not initialized');
    await eventually(() => errors.length > 0);

    const migrating = open({ ...missing, connection: { ...missing.connection, migrate: true } });
    await migrating.notify('migrated');
    await eventually(() => heard.includes('migrated'));
    await queue.notify('later');
    await eventually(() => heard.includes('later'));

    expect(errors).toEqual([
      expect.stringMatching(/^The queue agent-sessions at [^ @]+:\d+\/\w+ reported an error; retrying\.$/),
    ]);
  });
});
