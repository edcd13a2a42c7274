import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import {
  defineOrchestrator,
  reply,
  type SessionsAdapter,
  type TurnContext,
  type TurnEvent,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { describeServers } from '../support/servers.js';
import { whileSteady } from '../support/steady-clock.js';
import { adapterOf, optionsOn } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { SCRIPTS } from '../../lib/store/redis/redis-scripts.js';

const BOUND_MS = 1000;
/** Milliseconds longer than a batch and shorter than a lease. */
const OUTAGE_MS = 2000;
const COUNT = 60;

const APPENDS = {
  postgres: /append_events_v1/,
  mysql: /INSERT INTO .*turn_event/,
  redis: new RegExp(SCRIPTS.appendEvents.sha),
};

describeServers('events while the server is away', (server) => {
  let proxy: TcpProxy;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    proxy = await TcpProxy.start(server.url);
  });

  afterEach(async () => {
    proxy.restore();
    await proxy.stop();
  });

  it.each<[string, () => void]>([
    ['it cannot be reached', () => proxy.cut()],
    ['all answers are lost', () => proxy.swallowAnswers()],
    ['the answer to an append is lost', () => proxy.swallowAnswers(APPENDS[server.type])],
    ['the answer to an append is late', () => proxy.holdAnswers(APPENDS[server.type])],
  ])('TRN-30 are stored once and in order, and reach every reader, when %s for a while', (_, fail) =>
    whileSteady(BOUND_MS / 2, () => storeAndShow(fail)),
  );

  async function storeAndShow(fail: () => void): Promise<void> {
    proxy.restore();
    let failed = 0;
    const app = await start(
      // Each retry follows an observed failure.
      noting(newStore(), () => (failed += 1)),
      async (turn) => {
        for (let n = 1; n <= COUNT; n += 1) {
          void turn.emit({ type: 'delta', data: n });
          await delay(5);
          if (n === COUNT / 3) {
            fail();
            void delay(OUTAGE_MS).then(() => proxy.restore());
          }
        }
      },
    );
    try {
      const { turns, session, adapter } = app;
      const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
      const readers = Array.from({ length: 3 }, () => all(turns.readEvents(id)));
      for (const events of await Promise.all(readers)) {
        expect(events.map(({ offset }) => offset)).toEqual(Array.from({ length: COUNT + 1 }, (_value, at) => at + 1));
        expect(events.slice(0, COUNT).map(({ data }) => data)).toEqual(
          events.slice(0, COUNT).map(({ offset }) => offset),
        );
        expect(events[COUNT]).toMatchObject({ type: 'settled', data: { status: 'awaiting-input' } });
      }
      expect(failed).toBeGreaterThan(0);
      expect(await adapter.events.last(id)).toBe(COUNT);
      expect(await turns.get(id)).toMatchObject({ failures: 0 });
    } finally {
      await app.close();
    }
  }

  it('TRN-32 a reader in another process receives all events from an outage of its store', () =>
    whileSteady(BOUND_MS / 2, async () => {
      proxy.restore();
      const prefix = `s${randomUUID().slice(0, 8)}_`;
      const direct = adapterOf(optionsOn(server, prefix, { poolSize: 5 }));
      const worker = await start(direct, async (turn) => {
        for (let n = 1; n <= COUNT; n += 1) {
          await turn.emit({ type: 'delta', data: n });
          await delay(10);
        }
      });
      const behind = adapterOf({
        ...optionsOn({ ...server, url: proxy.url }, prefix, { poolSize: 5 }),
        operationTimeoutMs: BOUND_MS,
      });
      const web = await startApplication({ adapter: behind, role: 'submit' });
      const { id } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
      const events: TurnEvent[] = [];
      const read = (async () => {
        for await (const event of web.turns.readEvents(id)) events.push(event);
      })();
      await eventually(() => events.length > 5);
      proxy.cut();
      await worker.turns.result(id);
      proxy.restore();
      await read;
      expect(events.map(({ offset }) => offset)).toEqual(Array.from({ length: COUNT + 1 }, (_, at) => at + 1));
    }));

  it('TRN-33 a reader that has fallen behind continues once its store is back', () =>
    whileSteady(BOUND_MS / 2, async () => {
      proxy.restore();
      const { turns, session } = await start(newStore(), async (turn) => {
        for (let n = 1; n <= 300; n += 1) await turn.emit({ type: 'delta', data: n });
      });
      const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
      await turns.result(id);
      const offsets: number[] = [];
      for await (const { offset } of turns.readEvents(id)) {
        offsets.push(offset);
        if (offset === 1) {
          proxy.cut();
          void delay(OUTAGE_MS).then(() => proxy.restore());
        }
      }
      expect(offsets).toEqual(Array.from({ length: 301 }, (_, at) => at + 1));
    }));

  function newStore(): SessionsAdapter {
    const options = optionsOn({ ...server, url: proxy.url }, `s${randomUUID().slice(0, 8)}_`, { poolSize: 5 });
    return adapterOf({ ...options, operationTimeoutMs: BOUND_MS });
  }
});

function start(adapter: SessionsAdapter, work: (turn: TurnContext) => Promise<void>): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: { answer: async (turn) => (await work(turn), reply('done')) },
  });
  return startApplication({
    adapter,
    orchestrators: [desk],
    turns: { leaseMs: 15_000, reconcileMs: 1000, shutdownGraceMs: 5000 },
  });
}

async function all(stream: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Returns the store, and reports each failed append. */
function noting(adapter: SessionsAdapter, failed: () => void): SessionsAdapter {
  const { events } = adapter;
  const append: typeof events.append = async (...args) => {
    try {
      return await events.append(...args);
    } catch (error) {
      failed();
      throw error;
    }
  };
  return { ...adapter, events: Object.assign(Object.create(events) as typeof events, { append }) };
}
