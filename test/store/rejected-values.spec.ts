import { setTimeout as delay } from 'node:timers/promises';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  defineOrchestrator,
  reply,
  type SessionsModuleOptions,
  StoreRejectedError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { capturingLogger } from '../support/capturing-logger.js';
import { FORBIDDEN, FORBIDDING_STORES, type ForbiddingStore } from '../support/forbidding-stores.js';
import { turnRequest } from '../support/ledger-requests.js';
import { type Application, rejection, startApplication } from '../support/running-application.js';
import { describeMariadb, describeSqlServers, MARIADB } from '../support/servers.js';
import { mariadb } from '../support/services/mariadb.js';
import { giveToServer } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { inProduction } from '../support/production.js';

inProduction();

/** A limit above the size of the forbidden values, so that the store sees them. */
const TURNS: SessionsModuleOptions['turns'] = {
  maxReplyBytes: 4_194_304,
  leaseMs: 3000,
  timeoutMs: false,
  retry: { backoff: { delayMs: 1 } },
};

/** What all of these stores advise for a value that a rule of the server forbids. */
const CURE = 'Change the value, or the setting of the server that forbids it.';

let effects = 0;
const desk = defineOrchestrator({
  name: 'desk',
  intents: {
    answer: async (turn) => {
      const { text } = turn.input;
      if (text === 'result' || text === 'error') effects += 1;
      if (text === 'step' || text === 'caught step') {
        const saved = turn.step('pay', () => {
          effects += 1;
          return FORBIDDEN;
        });
        if (text === 'step') await saved;
        else await saved.catch(() => undefined);
      }
      if (text === 'error') throw new Error('forbidden');
      return reply(text === 'result' ? FORBIDDEN : 'Done.');
    },
  },
});

beforeEach(() => void (effects = 0));

describe.each(FORBIDDING_STORES)('a store that rejects a value: $name', ({ name, code, open }) => {
  let store: ForbiddingStore;
  let app: Application;
  let sessionId: string;
  const { lines, logger } = capturingLogger();

  beforeAll(async () => {
    store = await open();
  });

  beforeEach(async () => {
    lines.length = 0;
    app = await startApplication({
      // Only `close` would release the lock of a worker.
      adapter: { ...store.adapter, beginWork: undefined, close: undefined },
      orchestrators: [desk],
      turns: TURNS,
      logger,
    });
    sessionId = await app.session();
  });

  afterAll(() => store.stop());

  // The record of an error is shorter than the limit of Redis.
  const contents = [
    ['step', 'saveStep'],
    ['caught step', 'saveStep'],
    ['result', 'settle'],
    ['error', 'retry'],
  ] as const;
  const rejectable = contents.filter(([text]) => name !== 'redis' || text !== 'error');

  it.each(rejectable)(
    'FIX-61 fails the turn once with its cause, and the lane continues: %s',
    async (text, operation) => {
      const [failed, next] = await Promise.all([
        rejection(app.handle(desk).execute(text, { sessionId }), TurnFailedError),
        app.handle(desk).execute('next', { sessionId }),
      ]);

      expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED', details: { operation } });
      expect(failed.failure?.message).toContain(code);
      expect(failed.failure?.message).toContain(CURE);
      expect(next).toMatchObject({ reply: 'Done.', turnIndex: 0 });
      expect(effects).toBe(1);
      const entries = lines.filter((line) => /^(warn|error) /.test(line));
      expect(entries).toEqual([expect.stringMatching(/STORE_REJECTED/)]);
      expect(entries[0]).toContain(code);
      expect(entries[0]).toContain(CURE);
      expect(entries[0]).not.toContain('forbidden');
      const messages = await app.adapter.conversations.page(sessionId);
      expect(messages.map(({ content }) => content)).toEqual(['next', 'Done.']);
    },
  );

  it('FIX-61 fails no turn of other sessions that is stored at the same time', async () => {
    const texts = ['step', 'result', 'next', 'next', 'step', 'next', 'result', 'next'];
    const outcomes = await Promise.all(
      texts.map(async (text) => {
        const turn = app.handle(desk).execute(text, { sessionId: await app.session() });
        return turn.then(
          () => 'next',
          () => text,
        );
      }),
    );
    expect(outcomes).toEqual(texts);
    expect(effects).toBe(4);
  });

  it('FIX-61 rejects the call of an application with a typed error', async () => {
    const address = { namespace: 'n', scope: '', sessionId, key: 'k' };
    const input = { ...turnRequest(randomUUID(), { sessionId }) };
    const call =
      name === 'redis'
        ? app.adapter.state.set(address, FORBIDDEN)
        : app.adapter.conversations.append(sessionId, [{ id: input.id, role: 'user', content: 'forbidden' }]);
    await rejection(call, StoreRejectedError);
  });
});

describeSqlServers('a server that answers with an unknown code', ({ type, url }) => {
  it('FIX-61 a call is repeated a few times, then it is rejected', async () => {
    const tablePrefix = `f${randomBytes(5).toString('hex')}_`;
    const adapter = typeormAdapter({ dataSource: { type, url }, tablePrefix, migrationsRun: true });
    const app = await startApplication({ adapter, orchestrators: [desk], turns: TURNS });
    const server = await new DataSource({ type, url }).initialize();
    const on = `BEFORE INSERT ON ${tablePrefix}step FOR EACH ROW`;
    if (type === 'postgres') {
      const body = "BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'ZZ123'; END";
      await server.query(`CREATE FUNCTION ${tablePrefix}no() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`);
      await server.query(`CREATE TRIGGER ${tablePrefix}no ${on} EXECUTE FUNCTION ${tablePrefix}no()`);
    } else {
      await server.query(`CREATE TRIGGER ${tablePrefix}no ${on} SIGNAL SQLSTATE '45000'`);
    }
    await server.destroy();

    const sessionId = await app.session();
    const failed = await rejection(app.handle(desk).execute('caught step', { sessionId }), TurnFailedError);
    expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED', details: { operation: 'saveStep' } });
    expect(failed.failure?.message).toMatch(/ZZ123|ER_SIGNAL_EXCEPTION|1644/);
    expect(effects).toBe(1);
    expect(await app.handle(desk).execute('next', { sessionId })).toMatchObject({ reply: 'Done.' });
  });
});

describeMariadb('a statement above max_allowed_packet', () => {
  it('NST-05 is divided if each of its values is smaller', async () => {
    const tablePrefix = `f${randomBytes(5).toString('hex')}_`;
    const dataSource = { type: 'mysql', url: MARIADB.url } as const;
    const adapter = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 60_000 });
    await adapter.init?.();
    const content = 'x'.repeat(1_000_000);
    const messages = Array.from({ length: 70 }, (_, n) => ({ id: `m${n}`, role: 'user' as const, content }));
    await adapter.conversations.append('long', messages);

    expect(await adapter.conversations.window('long', 2)).toMatchObject([{ id: 'm68' }, { id: 'm69' }]);
    await adapter.close?.();
  });

  it('FIX-61 is not sent, so that the connection stays open and the turn fails', async () => {
    const folder = temporaryFolder();
    giveToServer(folder);
    const { url, stop } = await mariadb.start(folder);
    const server = await new DataSource({ type: 'mysql', url }).initialize();
    await server.query('SET GLOBAL max_allowed_packet = 1048576');
    const adapter = typeormAdapter({ dataSource: { type: 'mysql', url }, migrationsRun: true });
    try {
      // Without the limits of an application, the start does not check the limit of the server.
      await adapter.init?.();
      const app = await startApplication({ adapter, orchestrators: [desk], turns: TURNS });
      const sessionId = await app.session();
      const before = await aborted();
      for (const [text, operation] of [
        ['caught step', 'saveStep'],
        ['result', 'settle'],
      ]) {
        const failed = await rejection(app.handle(desk).execute(text, { sessionId }), TurnFailedError);
        expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED', details: { operation } });
        expect(failed.failure?.message).toContain('raise max_allowed_packet');
      }
      expect(await app.handle(desk).execute('next', { sessionId })).toMatchObject({ reply: 'Done.' });
      expect(effects).toBe(2);
      expect(await aborted()).toBe(before);
      await app.close();
    } finally {
      await server.destroy();
      await stop();
      await delay(0);
    }

    async function aborted(): Promise<number> {
      const [{ Value }] = await server.query<{ Value: string }[]>("SHOW GLOBAL STATUS LIKE 'Aborted_clients'");
      return Number(Value);
    }
  });
});
