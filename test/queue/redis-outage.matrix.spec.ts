import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { SessionsHealthIndicator, SessionsHealthModule } from 'nestjs-agent-sessions/terminus';
import { capturingLogger } from '../support/capturing-logger.js';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { PrivateRedis } from '../support/private-redis.js';
import { startApplication } from '../support/running-application.js';
import { describeRedis } from '../support/servers.js';
import { adapterOf, sqliteOptions } from '../support/stores.js';

const OUTAGE_MS = 60_000;
/** BullMQ waits up to 20 seconds before it connects again. */
const RESUMED_MS = 40_000;

const WORKER = join(import.meta.dirname, 'fixtures/work.mjs');

const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => 'not here' } });

describeRedis('turns during an outage of the Redis of BullMQ', () => {
  // The lanes of test/lowest run it with the lowest versions of BullMQ, and the matrix with the newest one.
  it(
    'FIX-69 DAY-03 DAY-07 resume by themselves, and health and the log show the outage',
    async () => {
      const redis = await PrivateRedis.start();
      const queue = { connection: { url: redis.url } };
      const store = sqliteOptions();
      const { lines, logger } = capturingLogger();
      const api = await startApplication({
        adapter: adapterOf(store),
        logger,
        role: 'submit',
        turns: { queue: bullmqQueue(queue) },
        orchestrators: [desk],
        imports: [SessionsHealthModule],
      });
      const worker = forkProgram(WORKER, { store, queue, role: 'work' });
      await once(worker, 'message');
      const ready = once(worker, 'message');
      worker.send('start');
      await ready;
      const sessionId = await api.session();
      const submit = async (text: string): Promise<string> => (await api.turns.submit('desk', text, { sessionId })).id;
      const reply = async (id: string): Promise<unknown> =>
        (await api.turns.result(id, { timeoutMs: RESUMED_MS })).reply;
      const queueHealth = async (): Promise<unknown> => {
        const { sessions } = await api.app.get(SessionsHealthIndicator, { strict: false }).isHealthy('sessions');
        return sessions.queue;
      };
      expect(await reply(await submit('before'))).toBe('did before');

      await redis.kill();
      const meanwhile = await submit('meanwhile');
      await delay(OUTAGE_MS);
      expect(await api.turns.get(meanwhile)).toMatchObject({ status: 'queued' });
      expect(await queueHealth()).toMatchObject({ status: 'down' });

      await redis.startAgain();
      expect(await reply(meanwhile)).toBe('did meanwhile');
      expect(await reply(await submit('after'))).toBe('did after');
      expect(await queueHealth()).toMatchObject({ status: 'up' });
      // Logged for each outage once, however often BullMQ tries to connect.
      const place = `The queue agent-sessions at ${new URL(redis.url).host}`;
      const entries = (): string[] =>
        lines.flatMap((line) => {
          if (line.startsWith(`error ${place} reported an error; retrying.`)) return ['failed'];
          return line.startsWith(`log ${place} is connected again.`) ? ['recovered'] : [];
        });
      await eventually(() => entries().at(-1) === 'recovered');
      expect(entries().slice(0, 2)).toEqual(['failed', 'recovered']);
      await kill(worker);
      await api.close();
      await redis.stop();
    },
    OUTAGE_MS + 2 * RESUMED_MS,
  );
});
