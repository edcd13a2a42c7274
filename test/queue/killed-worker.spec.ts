import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { placeOfRings, ringsOn } from '../support/bullmq.js';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { MARIADB, TEST_SERVERS, type TestServer } from '../support/servers.js';
import { steadyClock } from '../support/steady-clock.js';
import { adapterOf, serverStore } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/work.mjs');

const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => 'not here' } });

/** A worker in a process of its own. */
class Worker {
  readonly attempts: { readonly text: string; readonly attempt: number }[] = [];

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (message) => {
      if (typeof message === 'object' && 'text' in message) this.attempts.push(message as Worker['attempts'][number]);
    });
  }

  /** Resolves when it works. */
  static async start(setup: object): Promise<Worker> {
    const child = fork(PROGRAM, [JSON.stringify(setup)], { execArgv: [] });
    const ready = once(child, 'message');
    const worker = new Worker(child);
    await ready;
    return worker;
  }

  /** @returns the id of a turn that it accepted, and runs without a ring */
  async submit(sessionId: string, text: string): Promise<string> {
    const id = new Promise<string>((resolve) => {
      this.child.on('message', (message) => {
        if (typeof message === 'object' && 'id' in message) resolve(message.id as string);
      });
    });
    this.child.send({ sessionId, text });
    return id;
  }

  async kill(): Promise<void> {
    if (this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }
}

/** Side by side: all that they do is wait for the lease. */
const SERVERS = TEST_SERVERS.filter((server) => server !== MARIADB);
const workers: Worker[] = [];

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
});

/** An API here, and what starts its workers. */
async function deploy(server: TestServer): Promise<{ api: Application; startWorker: () => Promise<Worker> }> {
  const store = serverStore(server).place?.();
  if (!store) throw new Error('Workers share a store.');
  const queue = placeOfRings(server);
  const api = await startApplication({
    adapter: adapterOf(store),
    role: 'submit',
    turns: { queue: bullmqQueue(ringsOn(server, queue)) },
    orchestrators: [desk],
  });
  const startWorker = async (): Promise<Worker> => {
    const worker = await Worker.start({ store, queue, role: 'both' });
    workers.push(worker);
    return worker;
  };
  return { api, startWorker };
}

async function killOne(server: TestServer, count: number): Promise<void> {
  const { api, startWorker } = await deploy(server);
  const worker = await startWorker();
  const sessionIds = await Promise.all(Array.from({ length: 5 }, () => api.session()));
  // One of them is its own.
  const own = await worker.submit(sessionIds[0], 'long');
  const turns = await Promise.all(
    sessionIds.map(async (sessionId, n) => {
      const long = n === 0 ? own : (await api.turns.submit('desk', 'long', { sessionId })).id;
      const behind = await api.turns.submit('desk', 'behind', { sessionId });
      return [long, behind.id];
    }),
  );
  await eventually(() => worker.attempts.length === sessionIds.length);
  const others = await Promise.all(Array.from({ length: count - 1 }, () => startWorker()));

  await worker.kill();
  const killedAt = steadyClock.now();
  if (count === 1) others.push(await startWorker());
  const results = await Promise.all(turns.flat().map((id) => api.turns.result(id, { timeoutMs: 30_000 })));

  expect(steadyClock.now() - killedAt).toBeLessThan(15_000);
  expect(results.map(({ turnIndex }) => turnIndex)).toEqual(sessionIds.flatMap(() => [0, 1]));
  const attempts = others.flatMap((other) => other.attempts);
  expect(attempts.filter(({ text }) => text === 'long')).toEqual(sessionIds.map(() => ({ text: 'long', attempt: 2 })));
  for (const [long] of turns) expect((await api.turns.get(long))?.lost).toBe(1);
}

it('TRN-15 TRN-21 with every default, one or three, the lanes of a killed worker go on with another one within 15 seconds, in order', async () => {
  await Promise.all(SERVERS.flatMap((server) => [killOne(server, 1), killOne(server, 3)]));
}, 60_000);
