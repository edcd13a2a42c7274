import { randomUUID } from 'node:crypto';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type ClaimedTurn, type StoredStep } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { describePostgres } from '../support/servers.js';

const STEP: StoredStep = { kind: 'step', iteration: 0, intent: 'i', parent: '', name: 'n', key: 0, value: 1 };
/** An age that includes what happens in the current millisecond. */
const ANY_AGE = -1000;

/** Removals of a session while another connection sweeps its turns. Neither retries after a deadlock, as the store does. */
describePostgres('removals and sweeps in the PostgreSQL store', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `r${randomUUID().slice(0, 8)}_`;
  let store: SessionsAdapter;
  let remover: PostgresRival;
  let sweeper: PostgresRival;

  beforeAll(async () => {
    const dataSource = { type: 'postgres', url, poolSize: 2 } as const;
    store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 15_000 });
    await store.init?.();
    remover = await PostgresRival.open(url, tablePrefix);
    sweeper = await PostgresRival.open(url, tablePrefix);
  });

  beforeEach(() => sweeper.begin());
  afterEach(() => sweeper.end('ROLLBACK'));

  afterAll(async () => {
    await remover.close();
    await sweeper.close();
    await store.close?.();
  });

  describe.each([
    ['purge_settled', { older_than_ms: ANY_AGE, max_turns: 10 }],
    ['delete_expired_events', { max_turns: 10 }],
  ])('while a sweep runs: %s', (sweep, options) => {
    it('SES-11 a delete does not deadlock', () =>
      expectBothEnd(sweep, options, (id) => remover.call('delete_session', { id })));

    it('NST-25 an erasure does not deadlock', () =>
      expectBothEnd(sweep, options, (id) => remover.call('erase_session', { id })));

    it('SES-11 a purge of expired sessions does not deadlock', () =>
      expectBothEnd(sweep, options, async (id) => {
        await store.sessions.update(id, { state: 'expired', stateChangedAt: new Date(0).toISOString() });
        const purged = await remover.call('purge_expired', { older_than_ms: 0, max_sessions: 10 });
        expect(purged).toEqual([id]);
        return true;
      }));
  });

  /** Removes a session while the sweeper has locked its turn, but not yet deleted its steps and events. */
  async function expectBothEnd(
    sweep: string,
    options: object,
    remove: (sessionId: string) => Promise<boolean>,
  ): Promise<void> {
    const sessionId = randomUUID();
    const turnId = await settledTurn(sessionId);
    await sweeper.query(`SELECT FROM "${tablePrefix}turn" WHERE id = $1 FOR UPDATE`, [turnId]);
    const removed = remove(sessionId);
    await sweeper.isWaitedFor();
    const commit = async (): Promise<number> => {
      const swept = await sweeper.call<number>(sweep, options);
      await sweeper.end('COMMIT');
      return swept;
    };

    expect(await Promise.all([removed, commit()])).toEqual([true, 1]);
    expect(await store.sessions.fetchById(sessionId)).toBeNull();
    for (const table of ['step', 'turn_event', 'turn']) {
      expect(await sweeper.query(`SELECT FROM "${tablePrefix}${table}"`)).toEqual([]);
    }
  }

  /** Creates a session with one turn, whose steps and events a sweep deletes. */
  async function settledTurn(sessionId: string): Promise<string> {
    await new SessionStore(store.sessions).create({ id: sessionId, userId: 'ann' });
    await store.turns.accept(turnRequest(randomUUID(), { sessionId }));
    const { hold } = (await store.turns.claim(sessionId, claimRequest('me'))) as ClaimedTurn;
    await store.turns.saveStep(hold, STEP);
    const event = { type: 'delta', data: 1 };
    await store.events.append(hold, { number: 1, events: [event], restart: event }, 0);
    await store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 1 });
    return hold.turnId;
  }
});
