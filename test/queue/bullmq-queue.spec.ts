import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { BullModule } from '@nestjs/bullmq';
import { memoryAdapter, SessionsConfigurationError } from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { Echo } from '../support/application.js';
import { describeBullmqServers, HAS_BACKENDS, queueOptionsOn } from '../support/bullmq.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { portOfNobody } from '../support/port-of-nobody.js';
import { gate, startApplication } from '../support/running-application.js';

describeBullmqServers('BullMQ', (server) => {
  const opened: BullmqQueue[] = [];

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((queue) => queue.close()));
  });

  /** Opens the queues of several processes. */
  function processes<Count extends 1 | 2 | 3>(count: Count): BullmqQueue[] {
    const same = queueOptionsOn(server);
    const queues = Array.from({ length: count }, () => bullmqQueue(same));
    opened.push(...queues);
    return queues;
  }

  it('TRN-21 delivers a notification of one process to one of the others', async () => {
    const [api, one, other] = processes(3);
    const heard: string[] = [];
    for (const worker of [one, other]) await worker.process(async (id) => void heard.push(id));

    for (let n = 0; n < 20; n += 1) await api.notify(`s-${n}`);

    await eventually(() => heard.length >= 20);
    expect(new Set(heard).size).toBe(20);
    expect(heard).toHaveLength(20);
  });

  it('TRN-21 visits sessions concurrently, up to its concurrency', async () => {
    const queue = bullmqQueue({ ...queueOptionsOn(server), concurrency: 3 });
    opened.push(queue);
    let running = 0;
    let most = 0;
    let done = 0;
    await queue.process(async () => {
      running += 1;
      most = Math.max(most, running);
      // The first visits wait until the limit is reached, then a while longer to detect one too many.
      await eventually(() => most >= 3);
      await new Promise((resolve) => setTimeout(resolve, 30));
      running -= 1;
      done += 1;
    });

    await Promise.all(Array.from({ length: 12 }, (_, n) => queue.notify(`s-${n}`)));
    await eventually(() => done === 12);

    expect(most).toBe(3);
  });

  it('TRN-21 never exceeds its concurrency, with notified and other visits', async () => {
    const queue = bullmqQueue({ ...queueOptionsOn(server), concurrency: 3 });
    opened.push(queue);
    let running = 0;
    let most = 0;
    let notified = 0;
    let kept = 0;
    const visit = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
    };
    await queue.process(async () => {
      await visit();
      notified += 1;
    });
    const bothKinds = async (): Promise<boolean> => {
      for (let n = 0; n < 4; n += 1) {
        queue.reserve(`kept ${n}`)?.visit(async () => {
          await visit();
          kept += 1;
        });
      }
      if (kept > 0 && notified < 60) await queue.notify(`notified ${notified}`);
      return kept >= 60 && notified >= 60;
    };
    await eventually(bothKinds, { limitMs: 30_000 });

    expect(most).toBe(3);
  });

  it('TRN-04 visits without notifications do not delay notified ones', async () => {
    const same = queueOptionsOn(server);
    const [api, busy] = [bullmqQueue(same), bullmqQueue({ ...same, concurrency: 1 })];
    opened.push(api, busy);
    const heard: string[] = [];
    await busy.process(async (id) => void heard.push(id));
    let kept = 0;
    let stop = false;
    const again = (): void => {
      const place = stop ? null : busy.reserve('busy');
      place?.visit(async () => {
        kept += 1;
        await new Promise(setImmediate);
        again();
      });
      if (!place && !stop) setImmediate(again);
    };
    again();
    try {
      await eventually(() => kept > 10);
      for (let n = 0; n < 10; n += 1) await api.notify(`s-${n}`);
      await eventually(() => heard.length === 10);
      const before = kept;
      await eventually(() => kept > before + 10);
    } finally {
      stop = true;
    }
  });

  it('TRN-21 passes a notification to another process when no slot is free', async () => {
    const same = queueOptionsOn(server);
    const [full, other] = [bullmqQueue({ ...same, concurrency: 1 }), bullmqQueue(same)];
    opened.push(full, other);
    const heard: string[] = [];
    await full.process(async (id) => void heard.push(`full ${id}`));
    const { pass, open } = gate();
    await eventually(() => {
      const place = full.reserve('long');
      place?.visit(() => pass());
      return place !== null;
    });
    await full.notify('s');
    await other.process(async (id) => void heard.push(`other ${id}`));

    await eventually(() => heard.length === 1);
    expect(heard).toEqual(['other s']);
    open();
  });

  it('TRN-21 keeps one notification of an overdue lane until a worker visits it', async () => {
    const same = queueOptionsOn(server);
    const [api, busy] = [bullmqQueue(same), bullmqQueue({ ...same, concurrency: 1 })];
    opened.push(api, busy);
    const heard: string[] = [];
    const gates = new Map(['long', 's'].map((id) => [id, gate()]));
    await busy.process(async (id) => {
      heard.push(id);
      await gates.get(id)!.pass();
    });
    const waiting = async (): Promise<number> => (await api.queue).getWaitingCount();
    await api.notify('long');
    await eventually(() => heard.length === 1);

    for (let n = 0; n < 20; n += 1) await api.notify('s', 0, true);
    expect(await waiting()).toBe(1);
    gates.get('long')!.open();
    await eventually(() => heard.length === 2);

    // The worker may be killed from now on, so the lane must be notified again.
    await api.notify('s', 0, true);
    expect(await waiting()).toBe(1);
    gates.get('s')!.open();
    await eventually(() => heard.length === 3);
    expect(heard).toEqual(['long', 's', 's']);
  });

  it('TRN-14 close waits for a visit without a notification', async () => {
    const [queue] = processes(1);
    await queue.process(async () => {});
    const { pass, open } = gate();
    await eventually(() => {
      const place = queue.reserve('long');
      place?.visit(() => pass());
      return place !== null;
    });
    let closed = false;
    const closing = queue.close().then(() => (closed = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(closed).toBe(false);
    expect(queue.reserve('late')).toBeNull();
    open();
    await closing;
  });

  it('PRF-05 TRN-21 turns on an idle lane send nothing to BullMQ', async () => {
    const queue = bullmqQueue(queueOptionsOn(server));
    const notify = jest.spyOn(queue, 'notify');
    const { turns, session, handle } = await startApplication({ turns: { queue }, orchestrators: [Echo] });
    const sessionId = await session();
    // Wait until BullMQ has reported once that nothing is waiting.
    await eventually(async () => {
      notify.mockClear();
      await handle(Echo).execute('hello', { sessionId });
      return notify.mock.calls.length === 0;
    });
    for (let n = 0; n < 10; n += 1) await handle(Echo).execute('hello', { sessionId });

    expect(notify).not.toHaveBeenCalled();
    expect(await turns.list({ sessionId, status: 'awaiting-input' })).not.toHaveLength(0);
  });

  it('TRN-21 leaves no job when no work remains', async () => {
    const [api, worker] = processes(2);
    let heard = 0;
    await worker.process(async () => {
      heard += 1;
      if (heard === 1) throw new Error('A failed handler must not affect the queue.');
    });
    for (let n = 0; n < 5; n += 1) await api.notify(`s-${n}`);
    await eventually(() => heard >= 5);

    const jobs = await api.queue;
    await eventually(async () => {
      const counts = await jobs.getJobCounts();
      return Object.values(counts).every((count) => count === 0);
    });
  });

  it('TRN-08 delivers a delayed notification after its delay', async () => {
    const [api, worker] = processes(2);
    const heard: number[] = [];
    await worker.process(async () => void heard.push(performance.now()));
    await api.notify('other');
    await eventually(() => heard.length === 1);

    const notifiedAt = performance.now();
    await api.notify('s', 300);
    await eventually(() => heard.length === 2);

    expect(heard[1] - notifiedAt).toBeGreaterThanOrEqual(299);
  });

  it('TRN-14 delivers notifications to other workers while one is paused', async () => {
    const [api, paused, other] = processes(3);
    const heard: string[] = [];
    await paused.process(async (id) => void heard.push(`paused ${id}`));
    await paused.pause();
    await other.process(async (id) => void heard.push(`other ${id}`));
    for (let n = 0; n < 10; n += 1) await api.notify(`s-${n}`);
    await eventually(() => heard.length === 10);
    expect(heard.filter((by) => by.startsWith('paused'))).toEqual([]);

    await other.pause();
    await paused.resume();
    await api.notify('later');
    await eventually(() => heard.includes('paused later'));
  });

  it('TRN-14 close waits for running visits, and leaves the rest to other workers', async () => {
    const [api, worker, other] = processes(3);
    const finished: string[] = [];
    let started = 0;
    await worker.process(async (id) => {
      started += 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
      finished.push(id);
    });
    await api.notify('running');
    await eventually(() => started === 1);
    await worker.close();
    expect(finished).toEqual(['running']);

    await api.notify('later');
    const heard: string[] = [];
    await other.process(async (id) => void heard.push(id));
    await eventually(() => heard.length === 1);
    expect(heard).toEqual(['later']);
  });

  it('TRN-21 ping answers', async () => {
    const [queue] = processes(1);
    await expect(queue.ping()).resolves.toBeUndefined();
  });

  it('TRN-14 TRN-21 one queue serves applications, one after the other', async () => {
    const [queue] = processes(1);
    for (let start = 0; start < 2; start += 1) {
      const heard: string[] = [];
      await queue.init(() => null);
      await queue.process(async (id) => void heard.push(id));
      await queue.notify('s');
      await eventually(() => heard.length === 1);
      await queue.close();
    }
  });

  it('TRN-10 TRN-21 an application that only submits receives results from one that works', async () => {
    const adapter = memoryAdapter();
    const same = queueOptionsOn(server);
    const work = await startApplication({ adapter, turns: { queue: bullmqQueue(same) }, orchestrators: [Echo] });
    const api = await startApplication({
      adapter,
      role: 'submit',
      turns: { queue: bullmqQueue(same) },
      orchestrators: [Echo],
    });
    const sessionId = await api.session();
    expect(await api.handle(Echo).execute('hello', { sessionId })).toMatchObject({ reply: 'You said: hello' });
    await api.close();
    await work.close();
  });
});

describe('bullmqQueue', () => {
  it.each([[{ name: '' }], [{ name: 'a:b' }], [{ concurrency: 0 }], [{ concurrency: 1.5 }]])(
    'NST-03 rejects %o',
    (wrong) => {
      expect(() => bullmqQueue({ connection: {}, ...wrong })).toThrow(SessionsConfigurationError);
    },
  );

  it('NST-03 rejects an unknown key', () => {
    const wrong = { connection: {}, concurency: 2 };
    expect(() => bullmqQueue(wrong)).toThrow(
      'bullmqQueue: concurency is not a known key. Did you mean concurrency? Allowed: connection, ',
    );
  });

  (HAS_BACKENDS ? it.skip : it)('DAY-07 rejects backendFactory, because BullMQ 5 runs on Redis only', async () => {
    const queue = bullmqQueue({ connection: {}, backendFactory: () => ({}) });
    const start = startApplication({ turns: { queue } });
    await expect(start).rejects.toThrow(SessionsConfigurationError);
    await expect(start).rejects.toThrow('bullmqQueue: backendFactory requires BullMQ 6');
  });

  it.each([
    [{ connection: { url: undefined } }, 'bullmqQueue: connection.url is undefined'],
    [{ connection: { url: '' } }, 'bullmqQueue: connection.url is empty'],
    [{ connection: { connectionString: undefined } }, 'bullmqQueue: connection.connectionString is undefined'],
  ])('NST-03 TRN-21 rejects %o, which would select a local server', (options, message) => {
    const open = (): unknown => bullmqQueue<object>(options);
    expect(open).toThrow(SessionsConfigurationError);
    expect(open).toThrow(message);
  });

  it('NST-03 TRN-21 rejects such a connection of BullModule.forRoot at the start of the application', async () => {
    const imports = [BullModule.forRoot({ connection: { url: '' } })];
    const start = startApplication({ imports, turns: { queue: bullmqQueue() } });
    await expect(start).rejects.toThrow('BullModule.forRoot: connection.url is empty');
  });

  it.each([
    ['a URL', (port: number) => ({ url: `redis://desk:hunter2@127.0.0.1:${port}/3` }), '127.0.0.1', '/3'],
    ['host and port', (port: number) => ({ host: '127.0.0.1', port, password: 'hunter2' }), '127.0.0.1', ''],
    ['a port alone', (port: number) => ({ port, password: 'hunter2' }), 'localhost', ''],
  ])(
    'NST-22 TRN-21 names the server that %s cannot reach, without a password',
    async (_, connectionTo, host, database) => {
      const { lines, logger } = capturingLogger();
      const port = await portOfNobody();
      const queue = bullmqQueue({ connection: { ...connectionTo(port), retryStrategy: () => 100 } });
      const { close } = await startApplication({ turns: { queue }, logger });
      await eventually(() => lines.some((line) => line.includes('reported an error')));
      await close();
      const told = lines.filter((line) => line.includes('reported an error'));
      expect(told[0]).toContain(`The queue agent-sessions at ${host}:${port}${database} reported an error; retrying.`);
      for (const line of told) expect(line).not.toContain('hunter2');
    },
  );

  it('TRN-21 fails the start without a connection and without BullModule.forRoot', async () => {
    const start = startApplication({ turns: { queue: bullmqQueue() } });
    await expect(start).rejects.toThrow('BullModule.forRoot({ connection })');
  });

  it('TRN-21 opens its queue although it was used before the application has started', async () => {
    Logger.overrideLogger(false);
    const queue = bullmqQueue();
    await expect(queue.queue).rejects.toThrow('must not be used before the application has started');
    const connection = { port: await portOfNobody(), retryStrategy: () => 100 };
    await startApplication({ imports: [BullModule.forRoot({ connection })], turns: { queue } });
    expect((await queue.queue).name).toBe('agent-sessions');
  });

  it('TRN-21 accepts a turn although the queue is unreachable', async () => {
    Logger.overrideLogger(false);
    const nobody = await portOfNobody();
    const queue = bullmqQueue({ connection: { port: nobody, retryStrategy: () => 100 } });
    const app = await startApplication({ turns: { queue }, orchestrators: [Echo] });
    const sessionId = await app.session();

    const turn = await app.turns.submit('echo', 'hello', { sessionId });

    expect(turn).toMatchObject({ status: 'queued', position: 1 });
    expect(await app.turns.get(turn.id)).toMatchObject({ status: 'queued' });
  });
});
