import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { type LoggerService, Logger } from '@nestjs/common';
import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  StoreUnavailableError,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { mintId } from '../../lib/common/ids.js';
import { OutageLog } from '../../lib/turn/outage-log.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PrivateRedis } from '../support/private-redis.js';
import { type Application, gate, LASTING_STORES, startApplication } from '../support/running-application.js';
import { describePostgres, describeRedis, POSTGRES } from '../support/servers.js';

describe.each(LASTING_STORES)('the log of a crash, with $name', ({ create }) => {
  it('DAY-03 names the turn that is taken over, the lost worker, and how long the turn has run', async () => {
    const { lines, logger } = capturingLogger();
    const open = create();
    const { adapter, session } = await startApplication({ adapter: open(), role: 'submit' });
    const sessionId = await session();
    const { turn } = await adapter.turns.accept(turnRequest(mintId(), { sessionId }));
    const claimed = await adapter.turns.claim(sessionId, claimRequest('web-7/1'));
    await adapter.turns.renew(claimed!.hold, 150);
    const { turns } = await start(open(), logger);
    await turns.result(turn.id);

    const taken = lines.filter((line) => line.includes('takes the turn over'));
    expect(taken).toEqual([
      expect.stringMatching(
        new RegExp(
          `^log Attempt 1 of turn ${turn.id} of desk was lost with worker web-7, .* This process takes the turn over, ` +
            `\\d+\\.\\d s after its first attempt began\\. Session: ${sessionId}\\.`,
        ),
      ),
    ]);
  });
});

describe.each(LASTING_STORES)('the log of a shutdown, with $name', ({ create }) => {
  it('DAY-03 names the running turns and how each of them ended', async () => {
    const { lines, logger } = capturingLogger();
    const { pass, open: release } = gate();
    const app = await start(create()(), logger, {
      shutdownGraceMs: 500,
      work: async ({ input, signal }) => {
        if (input.text === 'waits') return pass();
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    });
    const [waits, endless] = await Promise.all(['waits', 'endless'].map((text) => begin(app, text)));
    const closed = app.close();
    await eventually(() => lines.some((line) => line.startsWith('log This process stops.')));
    release();
    await closed;

    expect(lines.filter((line) => /^log (This process stops|Shutdown)/.test(line))).toEqual([
      expect.stringContaining('2 turns run. Turns that do not end within 500 ms are released for other workers.'),
      expect.stringContaining(`Shutdown: turn ${waits.id} of desk has settled as awaiting-input.`),
      expect.stringContaining(
        `Shutdown: turn ${endless.id} of desk was released for another worker. Session: ${endless.sessionId}.`,
      ),
    ]);
  });

  it('DAY-03 has no entry for a shutdown without running turns', async () => {
    const { lines, logger } = capturingLogger();
    const app = await start(create()(), logger);
    await app.close();
    expect(lines.filter((line) => /This process stops|Shutdown/.test(line))).toEqual([]);
  });
});

describe('the log of the store', () => {
  afterEach(() => {
    Logger.overrideLogger(false);
  });

  it('DAY-03 says that sessions in memory are lost on restart', async () => {
    const lost = 'log The store is the memory of this process: sessions are lost on restart.';
    for (const adapter of [undefined, memoryAdapter()]) {
      const { lines, logger } = capturingLogger();
      await startApplication({ ...(adapter ? { adapter } : {}), logger });
      expect(lines.filter((line) => line.startsWith(lost))).toHaveLength(1);
    }
    const { lines, logger } = capturingLogger();
    await startApplication({ adapter: { ...memoryAdapter(), volatile: false }, logger });
    expect(lines.filter((line) => line.startsWith(lost))).toEqual([]);
  });

  it('DAY-03 says when a store is available again, if its outage was logged', () => {
    const { lines, logger } = capturingLogger();
    Logger.overrideLogger(logger);
    const log = new OutageLog(new Logger('Outages'));
    const error = new StoreUnavailableError('no');
    let now = 100_000;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
    log.repeats('settle', now - 1000, error);
    log.ended();
    expect(lines).toEqual([]);
    for (const outage of [1, 2]) {
      const since = now;
      now += 7000;
      log.repeats('settle', since, error);
      log.ended();
      log.ended();
      // Another call that began in the outage fails once more.
      log.repeats('renew', since, error);
      expect(lines).toHaveLength(2 * outage);
      expect(lines.at(-1)).toMatch(/^log The store is available again, after 7 s\./);
    }
    clock.mockRestore();
  });

  describeRedis('Redis', () => {
    it('DAY-03 says when the connection for changes was lost, and when it is open again', async () => {
      const { lines, logger } = capturingLogger();
      Logger.overrideLogger(logger);
      const redis = await PrivateRedis.start();
      const store = redis.store();
      await store.init?.();
      const of = (level: string): string[] =>
        lines.filter((line) => line.startsWith(`${level} The connection to Redis that listens`));
      for (const outage of [1, 2]) {
        await redis.kill();
        await eventually(() => of('warn').length === outage);
        await redis.startAgain();
        await eventually(() => of('log').length === outage);
      }
      await store.close?.();
      await redis.stop();
      expect([of('warn').length, of('log').length]).toEqual([2, 2]);
    });
  });

  describePostgres('PostgreSQL', () => {
    it('DAY-03 says when the connection for changes was lost, and when it is open again', async () => {
      const { lines, logger } = capturingLogger();
      Logger.overrideLogger(logger);
      const { url } = POSTGRES;
      const tablePrefix = `h${randomUUID().slice(0, 8)}_`;
      const store = typeormAdapter({
        dataSource: { type: 'postgres', url, poolSize: 3 },
        tablePrefix,
        migrationsRun: true,
      });
      await store.init?.();
      store.changes.subscribe(() => undefined);
      const client = new pg.Client(url);
      await client.connect();
      const listener = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN "${tablePrefix}%'`;
      await eventually(async () => (await client.query(listener)).rowCount === 1);
      await eventually(() => lines.some((line) => line.startsWith('warn The connection that listens')));
      await eventually(() => lines.some((line) => /^log The connection that listens .* is open again\./.test(line)));
      await client.end();
      await store.close?.();
    });
  });
});

/** Starts an application with one orchestrator that does `work`, then answers. */
function start(
  adapter: SessionsAdapter,
  logger: LoggerService,
  {
    shutdownGraceMs = 50,
    work = async () => {},
  }: { shutdownGraceMs?: number; work?: (turn: TurnContext) => Promise<void> } = {},
): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        await work(turn);
        return reply('Done.');
      },
    },
  });
  return startApplication({ adapter, orchestrators: [desk], logger, turns: { shutdownGraceMs } });
}

/** Submits a turn and waits until it runs. */
async function begin(app: Application, text: string): Promise<{ id: string; sessionId: string }> {
  const sessionId = await app.session();
  const { id } = await app.turns.submit('desk', text, { sessionId });
  await eventually(async () => (await app.turns.get(id))?.status === 'running');
  return { id, sessionId };
}
