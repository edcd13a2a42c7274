import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { defineOrchestrator, reply, type SessionsAdapter, type StoreUnavailableError } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, startApplication } from '../support/running-application.js';
import { describeServers } from '../support/servers.js';
import { whileSteady } from '../support/steady-clock.js';
import { adapterOf, optionsOn } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { SCRIPTS } from '../../lib/store/redis/redis-scripts.js';

const BOUND_MS = 400;

const COMMITS = { postgres: /settle_v1/, mysql: /\bCOMMIT\b/, redis: new RegExp(SCRIPTS.settle.sha) };

describeServers('turns while the server is slow', (server) => {
  let proxy: TcpProxy;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    proxy = await TcpProxy.start(server.url);
  });

  afterEach(async () => {
    proxy.restore();
    await proxy.stop();
  });

  it.each([
    ['every answer', undefined],
    ['the answer to the commit', COMMITS[server.type]],
  ])('TRN-15 BOT-08 settle once each and in order, when %s is late', (_, late) =>
    whileSteady(BOUND_MS / 2, () => settleOnceEach(late)),
  );

  async function settleOnceEach(late: RegExp | undefined): Promise<void> {
    proxy.restore();
    const attempts: string[] = [];
    const failures: StoreUnavailableError[] = [];
    const allAreSubmitted = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          await allAreSubmitted.pass();
          attempts.push(`${turn.input.text} ${turn.attempt}`);
          if (turn.input.text === 'two') proxy.holdAnswers(late);
          return reply(`${turn.input.text} is done`);
        },
      },
    });
    const app = await startApplication({
      // The delay ends when it has failed the first settle.
      adapter: noting(newStore(), (error) => {
        failures.push(error);
        proxy.restore();
      }),
      orchestrators: [desk],
      turns: { leaseMs: 15_000, reconcileMs: 1000, shutdownGraceMs: 5000 },
    });
    try {
      const { turns, checkpoints, session, adapter } = app;
      const sessionId = await session();
      const submitted: string[] = [];
      for (const text of ['one', 'two', 'three']) submitted.push((await turns.submit('desk', text, { sessionId })).id);
      allAreSubmitted.open();
      await eventually(() => failures.length > 0);
      const results = await Promise.all(submitted.map((turnId) => turns.result(turnId)));

      if (late) expect(failures[0].maybeApplied).toBe(true);
      expect(results.map((result) => [result.turnIndex, result.reply])).toEqual([
        [0, 'one is done'],
        [1, 'two is done'],
        [2, 'three is done'],
      ]);
      expect(attempts).toEqual(['one 1', 'two 1', 'three 1']);
      expect(await checkpoints.history('desk', sessionId)).toHaveLength(3);
      expect((await adapter.conversations.page(sessionId)).map(({ content }) => content)).toEqual(
        ['one', 'two', 'three'].flatMap((text) => [text, `${text} is done`]),
      );
    } finally {
      await app.close();
    }
  }

  function newStore(): SessionsAdapter {
    const options = optionsOn({ ...server, url: proxy.url }, `s${randomUUID().slice(0, 8)}_`, { poolSize: 5 });
    return adapterOf({ ...options, operationTimeoutMs: BOUND_MS });
  }
});

/** Returns the store, and reports each failed settle. */
function noting(adapter: SessionsAdapter, failed: (error: StoreUnavailableError) => void): SessionsAdapter {
  const { turns } = adapter;
  const settle: typeof turns.settle = async (...args) => {
    try {
      return await turns.settle(...args);
    } catch (error) {
      failed(error as StoreUnavailableError);
      throw error;
    }
  };
  return { ...adapter, turns: Object.assign(Object.create(turns) as typeof turns, { settle }) };
}
