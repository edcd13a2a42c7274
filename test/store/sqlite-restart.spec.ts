import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger, type LoggerService } from '@nestjs/common';
import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  SessionsConfigurationError,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { type Application, rejection, startApplication } from '../support/running-application.js';
import { steadyClock } from '../support/steady-clock.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

/** Longer than the wait for a worker whose settings are unknown. */
const TURN_MS = 6000;

describe('an application that starts while another one on its SQLite file stops', () => {
  const adapters: SessionsAdapter[] = [];
  let file: string;
  let lines: string[];
  let logger: LoggerService;

  beforeEach(() => {
    file = join(temporaryFolder(), 'sessions.db');
    ({ lines, logger } = capturingLogger());
    Logger.overrideLogger(logger);
  });

  afterEach(async () => {
    for (const adapter of adapters.splice(0)) await adapter.close?.();
  });

  it('FIX-68 waits until its turn has ended, and logs that it waits', async () => {
    const before = await start();
    const { id } = await before.turns.submit('desk', 'Take your time.', { sessionId: await before.session() });
    await eventually(async () => (await before.turns.get(id))?.status === 'running');
    const closing = before.close();

    const after = await start();
    expect(await after.turns.get(id)).toMatchObject({ status: 'awaiting-input', failures: 0, lost: 0 });
    await closing;
    await after.close();
    // 8 s of grace, and 5 s more.
    expect(lines.filter((line) => line.includes('Another worker'))).toEqual([
      expect.stringContaining(`log Another worker runs turns on ${file}. Waiting up to 13 s for it to stop.`),
    ]);
  }, 30_000);

  it.each([
    [8000, 13_000],
    [120_000, 60_000],
  ])('FIX-68 waits for a grace of %i ms and 5 s more, at most 60 s: %i ms', async (shutdownGraceMs, waitMs) => {
    const waits: unknown[] = [];
    const beginWork = async (wait: unknown): Promise<void> => void waits.push(wait);
    await startApplication({ adapter: { ...memoryAdapter(), beginWork }, turns: { shutdownGraceMs } });
    expect(waits).toEqual([{ waitMs }]);
  });

  it('FIX-68 waits no longer than it was told, and reports what to do', async () => {
    await worker();
    const second = await open();
    const startedAt = steadyClock.now();
    const error = await rejection(second.beginWork!({ waitMs: 300 }), SessionsConfigurationError);

    expect(steadyClock.now() - startedAt).toBeLessThan(3000);
    expect(error.message).toMatch(/still runs turns on .*another application of this one.*Stop the other worker/);
  });

  it('FIX-68 stops waiting when it is closed, and leaves the lock free', async () => {
    const first = await worker();
    const second = await open();
    const refused = rejection(second.beginWork!({ waitMs: 60_000 }), StoreUnavailableError);
    await eventually(() => lines.some((line) => line.includes('Another worker')));
    await second.close?.();
    await refused;

    await first.close?.();
    await (await open()).beginWork?.({ waitMs: 0 });
  });

  it('FIX-68 releases its lock when it is closed, also if it was asked for it twice', async () => {
    const first = await worker();
    await rejection(first.beginWork!({ waitMs: 0 }), SessionsConfigurationError);
    await first.close?.();

    await (await open()).beginWork?.({ waitMs: 0 });
  });

  function start(): Promise<Application> {
    const intents = {
      answer: async () => {
        await delay(TURN_MS);
        return reply('Done.');
      },
    };
    return startApplication({
      adapter: sqliteAdapter(file),
      turns: { shutdownGraceMs: 8000 },
      orchestrators: [defineOrchestrator({ name: 'desk', intents })],
      logger,
    });
  }

  async function worker(): Promise<SessionsAdapter> {
    const adapter = await open();
    await adapter.beginWork?.();
    return adapter;
  }

  async function open(): Promise<SessionsAdapter> {
    const adapter = sqliteAdapter(file);
    adapters.push(adapter);
    await adapter.init?.();
    return adapter;
  }
});
