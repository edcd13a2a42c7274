import { setTimeout as delay } from 'node:timers/promises';
import { defineOrchestrator, reply, type SessionsAdapter, TurnFailedError } from 'nestjs-agent-sessions';
import { SessionsHealthIndicator, SessionsHealthModule } from 'nestjs-agent-sessions/terminus';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { LimitedUser } from '../support/limited-user.js';
import { PrivateRedis } from '../support/private-redis.js';
import { type Application, rejection, startApplication } from '../support/running-application.js';
import { describeRedis, describeSqlServers } from '../support/servers.js';

let effects = 0;
let during: () => Promise<void>;
const desk = defineOrchestrator({
  name: 'desk',
  intents: {
    answer: async (turn) => {
      if (turn.input.text === 'pay') {
        await turn
          .step('pay', async () => {
            effects += 1;
            await during();
          })
          .catch(() => undefined);
      }
      return reply('Done.');
    },
  },
});
const { lines, logger } = capturingLogger();

beforeEach(() => {
  effects = 0;
  lines.length = 0;
  during = async () => undefined;
});

function start(adapter: SessionsAdapter): Promise<Application> {
  return startApplication({
    adapter,
    orchestrators: [desk],
    logger,
    imports: [SessionsHealthModule],
    turns: { timeoutMs: false, leaseMs: 2000, retry: { backoff: { delayMs: 1 } } },
  });
}

async function storeHealth({ app }: Application): Promise<unknown> {
  const { sessions } = await app.get(SessionsHealthIndicator, { strict: false }).isHealthy('sessions');
  return (sessions as unknown as { store: unknown }).store;
}

/** Checks that a turn stays queued, until the operator has acted. */
async function queuesUntil(app: Application, sessionId: string, repair: () => Promise<void>): Promise<void> {
  expect(await storeHealth(app)).toEqual({ status: 'down', error: 'STORE_UNAVAILABLE', reason: 'deployment' });
  const { id } = await app.turns.submit('desk', 'next', { sessionId });
  await delay(300);
  expect(await app.turns.get(id)).toMatchObject({ status: 'queued', failures: 0, lost: 0 });

  await repair();
  expect(await app.turns.result(id)).toMatchObject({ reply: 'Done.' });
  expect(await storeHealth(app)).toMatchObject({ status: 'up' });
  expect(lines.filter((line) => line.includes('claims turns again'))).toHaveLength(1);
}

describeSqlServers('a user that loses a privilege', (server) => {
  let user: LimitedUser;
  const revoked: [privilege: string, table: string][] = [];

  beforeAll(async () => {
    user = await LimitedUser.create(server);
  });

  // A failed test must not take the privilege from the next one, whose start would fail.
  afterEach(async () => {
    for (const [privilege, table] of revoked.splice(0)) await user.grant(privilege, table);
  });

  afterAll(() => user.drop());

  async function revoke(privilege: string, table: string): Promise<void> {
    revoked.push([privilege, table]);
    await user.revoke(privilege, table);
  }

  it.each([
    ['step', 'pay', 'saveStep'],
    ['checkpoint', 'hello', 'settle'],
  ])(
    'FIX-61 fails the turn that cannot be stored, and claims no more until it has it: %s',
    async (table, text, operation) => {
      const app = await start(user.store());
      const sessionId = await app.session();
      await revoke('INSERT', table);
      const failed = await rejection(app.handle(desk).execute(text, { sessionId }), TurnFailedError);

      expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED', details: { operation } });
      expect(effects).toBe(text === 'pay' ? 1 : 0);
      const named = (): string[] =>
        lines.filter((line) => line.startsWith('error ') && /42501|ER_TABLEACCESS_DENIED_ERROR/.test(line));
      // The notification of the settle can arrive before its answer, after which the worker logs the failure.
      await eventually(() => named().length === 2);
      await queuesUntil(app, sessionId, () => user.grant('INSERT', table));
      expect(named()).toHaveLength(2);
    },
  );

  it('FIX-61 a worker that cannot claim stops, and leaves the turn queued', async () => {
    const app = await start(user.store());
    const sessionId = await app.session();
    await app.turns.lanes.pause({ sessionId });
    const { id } = await app.turns.submit('desk', 'hello', { sessionId });
    await revoke('UPDATE', 'turn');
    await app.turns.lanes.resume({ sessionId });
    await eventually(() => lines.some((line) => line.includes('claims no turns')));
    expect(await storeHealth(app)).toMatchObject({ status: 'down', reason: 'deployment' });
    expect(await app.turns.get(id)).toMatchObject({ status: 'queued', failures: 0, lost: 0 });

    await user.grant('UPDATE', 'turn');
    expect(await app.turns.result(id)).toMatchObject({ reply: 'Done.' });
  });

  it('FIX-61 NST-05 a settle that cannot be stored in any form waits, so that no effect is repeated', async () => {
    const app = await start(user.store());
    const sessionId = await app.session();
    during = () => revoke('UPDATE', 'turn');
    const { id } = await app.turns.submit('desk', 'pay', { sessionId });
    await eventually(() => lines.some((line) => line.includes('claims no turns')));
    await delay(500);
    await user.grant('UPDATE', 'turn');

    const failed = await rejection(app.turns.result(id), TurnFailedError);
    expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED' });
    expect(effects).toBe(1);
    expect(await app.handle(desk).execute('next', { sessionId })).toMatchObject({ reply: 'Done.' });
  });
});

describeRedis('a user that loses a permission: redis', () => {
  it('FIX-61 fails the turn that cannot be stored, and claims no more until it has it', async () => {
    const redis = await PrivateRedis.start();
    await redis.client.acl('SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all');
    try {
      const app = await start(redis.store({ url: redis.url.replace('redis://', 'redis://app:secret@') }));
      const sessionId = await app.session();
      await redis.client.acl('SETUSER', 'app', '-hsetnx');
      const failed = await rejection(app.handle(desk).execute('pay', { sessionId }), TurnFailedError);

      expect(failed.failure).toMatchObject({ code: 'STORE_REJECTED', details: { operation: 'saveStep' } });
      expect(effects).toBe(1);
      await queuesUntil(app, sessionId, async () => void (await redis.client.acl('SETUSER', 'app', '+hsetnx')));
      await app.close();
    } finally {
      await redis.stop();
    }
  });
});
