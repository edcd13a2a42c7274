import { join } from 'node:path';
import { memoryAdapter, SessionsConfigurationError, ShuttingDownError } from 'nestjs-agent-sessions';
import { SessionSweeper } from '../../lib/maintenance/session-sweeper.service.js';
import { TurnContexts } from '../../lib/turn/turn-contexts.js';
import { Echo } from '../support/application.js';
import { rejection, startApplication } from '../support/running-application.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

const idleQueue = {
  notify: async () => {},
  process: async () => {},
  pause: async () => {},
  resume: async () => {},
};

describe('the role of a process', () => {
  it('TRN-10 runs no turns with submit, but returns their results', async () => {
    const adapter = memoryAdapter();
    const api = await startApplication({ adapter, role: 'submit', orchestrators: [Echo] });
    const sessionId = await api.session();
    const turn = await api.turns.submit('echo', 'first', { sessionId });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await api.turns.get(turn.id)).toMatchObject({ status: 'queued' });

    const second = api.handle(Echo).execute('second', { sessionId });
    await startApplication({ adapter, role: 'work', orchestrators: [Echo] });

    expect(await second).toMatchObject({ reply: 'You said: second' });
    expect(await api.turns.get(turn.id)).toMatchObject({ status: 'awaiting-input' });
  });

  it('BOT-02 keeps no turn context with submit, because turns run elsewhere', async () => {
    const api = await startApplication({ role: 'submit', orchestrators: [Echo] });
    const sessionId = await api.session();
    const { id } = await api.handle(Echo).submit('hello', { sessionId, context: { database: {} } });
    expect(api.app.get(TurnContexts, { strict: false }).get(id)).toBeUndefined();
  });

  it('NST-06 runs no sweeps with submit', async () => {
    const api = await startApplication({ role: 'submit', sweep: { cron: '* * * * * *' } });
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(api.app.get(SessionSweeper, { strict: false }).counts).toMatchObject({ runs: 0 });
  });

  it('TRN-20 lets several processes submit to one SQLite file while one works', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    await startApplication({ adapter: sqliteAdapter(file), role: 'work', orchestrators: [Echo] });
    const apis = await Promise.all(
      [1, 2, 3].map(() => startApplication({ adapter: sqliteAdapter(file), role: 'submit', orchestrators: [Echo] })),
    );
    const sessionId = await apis[0].session();

    const results = await Promise.all(
      apis.map((api, n) => api.handle(Echo).execute(`from ${n}`, { sessionId, timeoutMs: 10_000 })),
    );

    expect(results.map(({ reply }) => reply)).toEqual(['You said: from 0', 'You said: from 1', 'You said: from 2']);
    expect(results.map(({ turnIndex }) => turnIndex).sort()).toEqual([0, 1, 2]);
  });

  it('NST-05 closes the queue with submit on shutdown', async () => {
    const closed: string[] = [];
    const queue = { ...idleQueue, close: async () => void closed.push('queue') };
    const api = await startApplication({ role: 'submit', turns: { queue } });
    await api.close();
    expect(closed).toEqual(['queue']);
  });

  it.each(['submit', 'both'] as const)(
    'NST-05 completes the shutdown if the queue cannot be closed (%s)',
    async (role) => {
      const adapter = memoryAdapter();
      const closed: string[] = [];
      const queue = { ...idleQueue, close: () => Promise.reject(new Error('The queue is away.')) };
      const api = await startApplication({
        adapter: { ...adapter, close: async () => void closed.push('store') },
        role,
        turns: { queue },
        orchestrators: [Echo],
      });
      const waiting = api.handle(Echo).execute('hello', { sessionId: await api.session() });
      const told = rejection(waiting, ShuttingDownError);
      await api.close();
      await told;
      expect(closed).toEqual(['store']);
    },
  );

  it('NST-03 rejects other roles, and work without an orchestrator', async () => {
    const wrong = { role: 'worker' as 'work' };
    await expect(startApplication(wrong)).rejects.toThrow(SessionsConfigurationError);
    await expect(startApplication(wrong)).rejects.toThrow("must be one of submit, work, both. Received: 'worker'.");
    await expect(startApplication({ role: 'work' })).rejects.toThrow("role 'work' requires an orchestrator");
  });
});
