import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { BULLMQ_SERVERS, placeOfNotifications, queueOptionsOn } from '../support/bullmq.js';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { type TestServer } from '../support/servers.js';
import { steadyClock } from '../support/steady-clock.js';
import { adapterOf, serverStore } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/work.mjs');

const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => 'not here' } });

/** A worker in a separate process. */
class Worker {
  readonly attempts: { readonly text: string; readonly attempt: number }[] = [];

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (message) => {
      if (typeof message === 'object' && 'text' in message) this.attempts.push(message as Worker['attempts'][number]);
    });
  }

  /** Resolves when the process has loaded its modules. */
  static async load(setup: object): Promise<Worker> {
    const child = forkProgram(PROGRAM, setup);
    await once(child, 'message');
    return new Worker(child);
  }

  /** Resolves when the worker is running. */
  async start(): Promise<Worker> {
    const ready = once(this.child, 'message');
    this.child.send('start');
    await ready;
    return this;
  }

  /** @returns the id of a turn that it accepted and runs without a notification */
  async submit(sessionId: string, text: string): Promise<string> {
    const id = new Promise<string>((resolve) => {
      this.child.on('message', (message) => {
        if (typeof message === 'object' && 'id' in message) resolve(message.id as string);
      });
    });
    this.child.send({ sessionId, text });
    return id;
  }

  kill(): Promise<void> {
    return kill(this.child);
  }
}

/** An API in this process, and a function that loads its workers. */
async function deploy(server: TestServer): Promise<{ api: Application; loadWorker: () => Promise<Worker> }> {
  const store = serverStore(server).place?.();
  if (!store) throw new Error('Workers need a shared store.');
  const queue = placeOfNotifications(server);
  const api = await startApplication({
    adapter: adapterOf(store),
    role: 'submit',
    turns: { queue: bullmqQueue(queueOptionsOn(server, queue)) },
    orchestrators: [desk],
  });
  const loadWorker = (): Promise<Worker> => Worker.load({ store, queue, role: 'both' });
  return { api, loadWorker };
}

/** Returns the time that the slowest of several turns takes, which run until `end`. A busy machine delays all turns. */
async function slowestTurn(api: Application, end: Promise<unknown>): Promise<number> {
  let slowest = 0;
  let hasEnded = false;
  void end.finally(() => (hasEnded = true)).catch(() => undefined);
  while (!hasEnded) {
    const startedAt = steadyClock.now();
    await api.turns.execute('desk', 'behind', { sessionId: await api.session() });
    slowest = Math.max(slowest, steadyClock.now() - startedAt);
    await delay(250);
  }
  return slowest;
}

async function killOne(server: TestServer, count: number): Promise<void> {
  const { api, loadWorker } = await deploy(server);
  const worker = await (await loadWorker()).start();
  const sessionIds = await Promise.all(Array.from({ length: 5 }, () => api.session()));
  // One of the turns is its own.
  const own = await worker.submit(sessionIds[0], 'long');
  const turns = await Promise.all(
    sessionIds.map(async (sessionId, n) => {
      const long = n === 0 ? own : (await api.turns.submit('desk', 'long', { sessionId })).id;
      const behind = await api.turns.submit('desk', 'behind', { sessionId });
      return [long, behind.id];
    }),
  );
  await eventually(() => worker.attempts.length === sessionIds.length);
  const others = await Promise.all(Array.from({ length: Math.max(1, count - 1) }, () => loadWorker()));
  const startOthers = (): Promise<unknown> => Promise.all(others.map((other) => other.start()));
  if (count > 1) await startOthers();

  await worker.kill();
  const killedAt = steadyClock.now();
  if (count === 1) await startOthers();
  const recovery = Promise.all(turns.flat().map((id) => api.turns.result(id, { timeoutMs: 60_000 })));
  const reference = slowestTurn(api, recovery);
  const results = await recovery;

  const tookMs = steadyClock.now() - killedAt;
  expect(tookMs - 5 * (await reference)).toBeLessThan(15_000);
  expect(results.map(({ turnIndex }) => turnIndex)).toEqual(sessionIds.flatMap(() => [0, 1]));
  const long = () => others.flatMap((other) => other.attempts).filter(({ text }) => text === 'long');
  await eventually(() => long().length === sessionIds.length);
  expect(long()).toEqual(sessionIds.map(() => ({ text: 'long', attempt: 2 })));
  for (const [first] of turns) expect((await api.turns.get(first))?.lost).toBe(1);
}

it('TRN-15 TRN-21 continues the lanes of a killed worker within 15 seconds, in order, with default options', async () => {
  // The cases only wait for the lease, so they run concurrently.
  await Promise.all(BULLMQ_SERVERS.flatMap((server) => [killOne(server, 1), killOne(server, 3)]));
}, 120_000);
