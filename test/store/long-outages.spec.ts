import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import {
  defineOrchestrator,
  memoryAdapter,
  PermanentTurnError,
  reply,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { instant } from '../../lib/common/instant.js';
import { OutageLog } from '../../lib/turn/outage-log.js';
import { TurnLease } from '../../lib/turn/turn-lease.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { describePostgres, POSTGRES } from '../support/servers.js';
import { adapterOf, optionsOn } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const NO_LISTENER = { cancelled: () => {}, lost: () => {}, failed: () => {}, repeats: () => {}, recovered: () => {} };

describePostgres('an outage that lasts', () => {
  it('FIX-61 is logged after 5 s with its cause, and the turn settles once when it is over', async () => {
    const { lines, logger } = capturingLogger();
    const proxy = await TcpProxy.start(POSTGRES.url);
    const options = {
      ...optionsOn({ ...POSTGRES, url: proxy.url }, `o${randomUUID().slice(0, 8)}_`),
      operationTimeoutMs: 1000,
    };
    let runs = 0;
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: () => {
          runs += 1;
          proxy.cut();
          return reply('Done.');
        },
      },
    });
    const app = await startApplication({
      adapter: adapterOf(options),
      orchestrators: [desk],
      logger,
      turns: { leaseMs: 60_000 },
    });
    try {
      const { id } = await app.turns.submit('desk', 'hello', { sessionId: await app.session() });
      await eventually(() => runs === 1);
      const ofOutage = (): string[] => lines.filter((line) => line.includes('The store is unavailable'));
      await delay(4000);
      expect(ofOutage()).toEqual([]);
      await eventually(() => ofOutage().length > 0, { limitMs: 4000 });
      expect(ofOutage()[0]).toMatch(
        /^error .* has failed for [5-8] s, and is repeated\. StoreUnavailableError[^]*caused by/,
      );
      await delay(1000);
      proxy.restore();
      expect(await app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(runs).toBe(1);
      expect(ofOutage()).toHaveLength(1);
    } finally {
      proxy.restore();
      await app.close();
      await proxy.stop();
    }
  }, 30_000);
});

it('FIX-61 logs no line for each lane that is visited during an outage', async () => {
  const { lines, logger } = capturingLogger();
  const adapter = memoryAdapter();
  let isAway = true;
  let visits = 0;
  const away = (): void => {
    if (isAway) throw new StoreUnavailableError('away', { maybeApplied: false });
  };
  const operations: Partial<TurnLedger> = {
    // Without an immediate claim, so that each lane is visited.
    accept: ({ claim: _claim, ...request }) => adapter.turns.accept(request),
    claim: async (sessionId, request) => {
      visits += 1;
      away();
      return adapter.turns.claim(sessionId, request);
    },
    due: async (limit, includeOffered) => {
      away();
      return adapter.turns.due(limit, includeOffered);
    },
  };
  const turns = Object.assign(Object.create(adapter.turns) as TurnLedger, operations);
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('Done.') } });
  const app = await startApplication({ adapter: { ...adapter, turns }, orchestrators: [desk], logger });
  const ids: string[] = [];
  for (let n = 0; n < 10; n += 1) {
    const { id } = await app.turns.submit('desk', 'hello', { sessionId: await app.session() });
    ids.push(id);
  }
  await eventually(() => visits >= 10);
  isAway = false;
  for (const id of ids) await app.turns.result(id);
  expect(lines.filter((line) => /^(warn|error) /.test(line))).toEqual([]);
});

it('FIX-61 logs a lane that cannot be claimed although others can', async () => {
  const { lines, logger } = capturingLogger();
  const adapter = memoryAdapter();
  let failing = '';
  const operations: Partial<TurnLedger> = {
    accept: ({ claim: _claim, ...request }) => adapter.turns.accept(request),
    claim: async (sessionId, request) => {
      if (sessionId === failing) throw new StoreUnavailableError('too slow', { maybeApplied: false });
      return adapter.turns.claim(sessionId, request);
    },
  };
  const turns = Object.assign(Object.create(adapter.turns) as TurnLedger, operations);
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('Done.') } });
  const app = await startApplication({ adapter: { ...adapter, turns }, orchestrators: [desk], logger });
  const other = await app.session();
  failing = await app.session();
  await app.turns.submit('desk', 'hello', { sessionId: failing });
  const isLogged = async (): Promise<boolean> => {
    await app.handle(desk).execute('hello', { sessionId: other });
    return lines.some((line) => /^error The store is unavailable: claim of session /.test(line));
  };
  await eventually(isLogged, { limitMs: 20_000 });
  expect(lines.filter((line) => /^(warn|error) /.test(line))).toHaveLength(1);
});

it('FIX-61 logs repeated calls after 5 s, then once per minute', () => {
  const { lines, logger } = capturingLogger();
  Logger.overrideLogger(logger);
  const since = 1_000_000;
  const clock = jest.spyOn(performance, 'now');
  try {
    const log = new OutageLog(new Logger('Outages'));
    const repeats = (call: string, seconds: number): void => {
      clock.mockReturnValue(since + seconds * 1000);
      log.repeats(call, since, new StoreUnavailableError('no'));
    };
    repeats('settle', 4);
    expect(lines).toEqual([]);
    for (const call of ['settle', 'saveStep', 'settle']) repeats(call, 7);
    repeats('settle', 66);
    expect(lines).toEqual([expect.stringContaining('settle has failed for 7 s')]);
    for (const seconds of [68, 69]) repeats('settle', seconds);
    expect(lines.slice(1)).toEqual([expect.stringContaining('settle has failed for 68 s')]);
  } finally {
    clock.mockRestore();
    Logger.overrideLogger(false);
  }
});

it.each(['returns', 'throws'])('FIX-61 limits a settle to 60 s with timeoutMs: false if a handler %s', async (ends) => {
  const answer = () => {
    if (ends === 'throws') throw new PermanentTurnError('no');
    return reply('Done.');
  };
  const desk = defineOrchestrator({ name: 'desk', intents: { answer } });
  const app = await startApplication({ orchestrators: [desk], turns: { timeoutMs: false } });
  const sessionId = await app.session();
  const limit = jest.spyOn(TurnLease.prototype, 'limit');
  try {
    await app.turns.execute('desk', 'hello', { sessionId }).catch(() => undefined);
    expect(limit.mock.calls).toEqual([[60_000]]);
  } finally {
    limit.mockRestore();
  }
});

it('FIX-61 a call is repeated until its limit, although the lease lasts', async () => {
  const hold = { sessionId: 's', turnId: 't', fence: 1 };
  const lease = new TurnLease(hold, memoryAdapter().turns, 60_000, instant(), NO_LISTENER);
  lease.limit(300);
  const startedAt = performance.now();
  const calls = lease.retrying('settle', () => Promise.reject(new StoreUnavailableError('no')));
  await expect(calls).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(performance.now() - startedAt).toBeLessThan(5000);
});
