import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type TurnHold } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { describePostgres } from '../support/servers.js';

describePostgres('changes of the PostgreSQL store without LISTEN', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `h${randomUUID().slice(0, 8)}_`;
  let store: SessionsAdapter;
  let hold: TurnHold;
  let heard: string[];

  beforeEach(async () => {
    Logger.overrideLogger(false);
    store = typeormAdapter({ dataSource: { type: 'postgres', url, poolSize: 3 }, tablePrefix, migrationsRun: true });
    await store.init?.();
    const { id: sessionId } = await new SessionStore(store.sessions).create({ userId: 'ann' });
    await store.turns.accept(turnRequest(randomUUID(), { sessionId }));
    const claimed = await store.turns.claim(sessionId, claimRequest('worker'));
    if (!claimed) throw new Error('Nothing was claimed.');
    ({ hold } = claimed);
    await stopListening();
    heard = [];
    store.changes.subscribe((turnId) => heard.push(turnId));
  });

  afterEach(() => store.close?.());

  it.each<[string, () => Promise<unknown>]>([
    ['settles', () => store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 1 })],
    ['cancels', () => store.turns.cancel(hold.turnId, 'cancel')],
  ])('TRN-10 a process is notified immediately of a turn that it %s itself', async (_, change) => {
    await change();

    // A second notification may follow if the store listens again by then.
    expect(new Set(heard)).toEqual(new Set([hold.turnId]));
  });

  /** Simulates a connection pooler in transaction mode, where notifications reach no listener. */
  async function stopListening(): Promise<void> {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(
      `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN "${tablePrefix}%'`,
    );
    expect(rows).toHaveLength(1);
    // The server's own wait would be longer than the pause before the store listens again.
    const listener = `SELECT FROM pg_stat_activity WHERE pid = ${rows[0].pid}`;
    await eventually(async () => (await client.query(listener)).rowCount === 0);
    await client.end();
  }
});
