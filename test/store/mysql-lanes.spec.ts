import { createOrchestrationStateManager, SessionStore } from 'nestjs-agent-sessions';
import { type StateAddress } from 'nestjs-agent-sessions/adapter';
import { turnRequest } from '../support/ledger-requests.js';
import { openMysql, type OpenMysql } from '../support/mysql-database.js';
import { describeMariadb } from '../support/servers.js';

const IDS = Array.from({ length: 20 }, (_, n) => `nobody-${n}`);

/** The rows that lock a session. A write creates a missing one, to have something to lock. */
describeMariadb('lanes of the MySQL store', () => {
  let store: OpenMysql;

  beforeEach(async () => {
    store = await openMysql(4);
  });

  afterEach(() => store.close());

  it('ORC-15 documents of ids without a session leave no lanes', async () => {
    const states = createOrchestrationStateManager({ storageProvider: store.ports.state, cleanup: { enabled: false } });
    for (const id of IDS) {
      await states.getOrCreateState(id);
      await states.updateState(id, { activeStep: 'ask' });
      await states.addUsedTool(id, 'search');
    }
    expect(await lanes()).toEqual([]);
    for (const id of IDS.slice(1)) {
      await store.ports.state.get(addressOf(id), { ttlMs: 1000 });
      expect(await states.removeSession(id)).toBe(true);
      await store.ports.state.reset({ sessionId: id, namespaces: ['n'], epoch: 'e' });
    }
    expect(await lanes()).toEqual([]);
    expect(await states.getState(IDS[0])).toMatchObject({ recentlyUsedTools: ['search'] });
  });

  it('TRN-02 a document keeps the lane of a session, of turns and of a mode', async () => {
    await new SessionStore(store.sessions).create({ id: 'session', userId: 'ann' });
    await store.ports.turns.accept(turnRequest('turn', { sessionId: 'turns', foreignSession: true }));
    await store.ports.turns.control({ sessionId: 'mode', mode: 'paused', foreignSession: true });
    for (const id of ['session', 'turns', 'mode', 'nobody']) await store.ports.state.set(addressOf(id), 1);
    expect(await lanes()).toEqual(['mode', 'session', 'turns']);

    await store.ports.turns.control({ sessionId: 'mode', mode: 'open', foreignSession: true });
    await store.sessions.delete('session');
    expect(await lanes()).toEqual(['turns']);
  });

  async function lanes(): Promise<unknown[]> {
    const rows = await store.query('SELECT session_id AS id FROM {lane} ORDER BY session_id');
    return rows.map(({ id }) => id);
  }
});

function addressOf(sessionId: string): StateAddress {
  return { namespace: 'n', scope: '', sessionId, key: 'k' };
}
