import { randomUUID } from 'node:crypto';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type StateAddress, type TurnHold } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { CONVERSATION_NAMESPACE } from '../../lib/ledger/namespaces.js';
import { HEAD } from '../../lib/conversation/conversation-head.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { describePostgres } from '../support/servers.js';

/** Writes during an uncommitted reset of another connection, and resets during uncommitted writes. */
describePostgres('concurrent resets in the PostgreSQL store', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `z${randomUUID().slice(0, 8)}_`;
  let store: SessionsAdapter;
  let other: PostgresRival;
  let address: StateAddress;

  beforeAll(async () => {
    const dataSource = { type: 'postgres', url, poolSize: 4 } as const;
    store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 15_000 });
    await store.init?.();
    other = await PostgresRival.open(url, tablePrefix);
  });

  beforeEach(async () => {
    address = { namespace: randomUUID(), scope: '', sessionId: randomUUID(), key: 'k' };
    await other.begin();
  });
  afterEach(() => other.end('ROLLBACK'));

  afterAll(async () => {
    await other.close();
    await store.close?.();
  });

  const append = { id: 'mine', entries: ['mine'], initial: 'new' };

  it.each([
    ['set', () => store.state.set(address, 'new')],
    ['append', () => store.state.append(address, append)],
  ])('STA-23 %s waits for the reset, and creates the document again', async (_, write) => {
    await store.state.set(address, 'old');
    await store.state.set(address, 'older');
    await reset();
    const written = write();
    await other.isWaitedFor();
    await other.end('COMMIT');

    expect(await written).toMatchObject({ value: 'new' });
  });

  it('STA-23 a reset waits for concurrent document writes, and clears them', async () => {
    const { namespace, scope, sessionId, key } = address;
    await other.call('append_document', { namespace, scope, session_id: sessionId, key, id: 'b', initial: '0' });
    const cleared = store.state.reset({ sessionId, namespaces: [namespace], epoch: 'new' });
    await other.isWaitedFor();
    await other.end('COMMIT');

    expect(await cleared).toEqual({ documents: { [namespace]: 1 }, messages: 0 });
    expect(await store.state.get(address)).toBeNull();
  });

  it('STA-23 a settle waits for the reset, and is rejected', async () => {
    const hold = await take();
    await reset();
    const settled = settle(hold);
    const refused = expect(settled).rejects.toMatchObject({ code: 'STATE_RESET', namespaces: [address.namespace] });
    await other.isWaitedFor();
    await other.end('COMMIT');

    await refused;
    expect(await store.state.get(address)).toBeNull();
  });

  it('STA-23 a settle waits for a reset that is rolled back, and succeeds', async () => {
    const hold = await take();
    await reset();
    const settled = settle(hold);
    await other.isWaitedFor();
    await other.end('ROLLBACK');

    expect((await settled).turn.status).toBe('awaiting-input');
    expect(await store.state.get(address)).toMatchObject({ value: 'new' });
  });

  it('STA-23 a claim waits for the reset, and starts in its epoch', async () => {
    const { sessionId } = address;
    await store.turns.accept(turnRequest(randomUUID(), { sessionId, foreignSession: true }));
    await store.state.set(address, 'old');
    await reset();
    const documents = { desk: [address] };
    const claimed = store.turns.claim(sessionId, claimRequest('me', { documents }));
    await other.isWaitedFor();
    await other.end('COMMIT');

    expect(await claimed).toMatchObject({ documents: [null], epochs: { [address.namespace]: 'epoch' } });
  });

  it('STA-23 a read of the head waits for a concurrent replacement', async () => {
    const head = { ...HEAD, sessionId: address.sessionId };
    await take();
    const { version } = (await store.state.set(head, 'old'))!;
    await reset({ namespaces: [CONVERSATION_NAMESPACE], head: argsOf(head), if_version: version });
    const read = store.state.get(head, {});
    await other.isWaitedFor();
    await other.end('COMMIT');

    expect(await read).toMatchObject({ value: 'new head', version: version + 1 });
  });

  it('STA-23 no turn starts in a session without a lane during its reset, and no lane remains', async () => {
    const { sessionId } = address;
    await store.state.set(address, 'old');
    expect(await reset()).toMatchObject({ documents: { [address.namespace]: 1 } });
    const accepted = store.turns.accept(turnRequest(randomUUID(), { sessionId, foreignSession: true }));
    await other.isWaitedFor();
    await other.end('COMMIT');

    expect((await accepted).turn.position).toBe(1);
    expect(await store.turns.claim(sessionId, claimRequest('me'))).toMatchObject({ epochs: {} });

    await store.state.reset({ sessionId: 'nobody', namespaces: ['n'], epoch: 'epoch' });
    expect(await other.query(`SELECT session_id FROM "${tablePrefix}lane" WHERE session_id = 'nobody'`)).toEqual([]);
  });

  /** Runs a reset in another transaction without a commit. */
  function reset(changes: object = {}): Promise<unknown> {
    const { sessionId, namespace } = address;
    const args = { session_id: sessionId, namespaces: [namespace], epoch: 'epoch', ...changes };
    return other.call('reset_state', args);
  }

  async function take(): Promise<TurnHold> {
    const { sessionId } = address;
    await store.turns.accept(turnRequest(randomUUID(), { sessionId, foreignSession: true }));
    const claimed = await store.turns.claim(sessionId, claimRequest('me'));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed.hold;
  }

  function settle(hold: TurnHold): ReturnType<SessionsAdapter['turns']['settle']> {
    const stateChanges = [{ name: address, append }];
    return store.turns.settle(hold, { status: 'awaiting-input', messages: [], keepCheckpoints: 1, stateChanges });
  }
});

function argsOf({ namespace, scope, sessionId, key }: StateAddress): Record<string, unknown> {
  return { namespace, scope, session_id: sessionId, key, value: '"new head"' };
}
