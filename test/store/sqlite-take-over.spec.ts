import { join } from 'node:path';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AcceptTurn } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

describe('a worker that takes over a SQLite file', () => {
  it('TRN-20 immediately finds lanes that the previous process notified but did not visit', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const before = await startWork(file);
    await new SessionStore(before.sessions).create({ id: 's', userId: 'ann' });
    await before.turns.accept(turn('s'));
    await eventually(() => notifications(before, 's'), { what: 'a notify' });
    await before.close?.();

    const after = await startWork(file);

    expect(await after.turns.due(10)).toEqual(['s']);
    await after.close?.();
  });
});

async function startWork(file: string): Promise<SessionsAdapter> {
  const adapter = sqliteAdapter(file);
  await adapter.init?.();
  await adapter.beginWork?.();
  return adapter;
}

async function notifications({ turns }: SessionsAdapter, sessionId: string): Promise<boolean> {
  return (await turns.due(10)).includes(sessionId);
}

function turn(sessionId: string): AcceptTurn {
  return {
    id: 't',
    sessionId,
    orchestrator: 'echo',
    version: '1',
    request: { input: { text: 'hello' } },
    attributes: {},
    whenBusy: 'enqueue',
    maxQueued: 10,
  };
}
