import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionEvent,
  SessionConflictError,
  SessionNotFoundError,
  SessionRecords,
  SessionsConfigurationError,
  SessionStateService,
  type TurnContext,
  TurnNotFoundError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, rejection, startApplication } from '../support/running-application.js';
import { storedText } from '../support/stored-text.js';
import { adapterOf, BEHAVIOUR_STORES } from '../support/stores.js';

const SAID = 'My number is 4711-0815.';

describe.each(BEHAVIOUR_STORES)('an erase over $name', ({ place }) => {
  it('NST-25 stops the running turn, and leaves no data of the session', async () => {
    const options = place?.();
    const { pass, open: release } = gate();
    const late: string[] = [];
    let running: TurnContext | undefined;
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn: TurnContext) => {
          await turn.emit({ type: 'delta', data: SAID });
          await turn.step('look up', () => SAID);
          turn.modules.tools.set('crm', 'said', SAID);
          if (turn.input.text !== SAID) return reply(SAID, { state: { said: SAID } });
          running = turn;
          await pass();
          // The handler continues and ignores its signal.
          const writes = [
            () => turn.step('late', () => SAID),
            () => turn.emit({ type: 'delta', data: SAID }),
            () => app.adapter.conversations.append(turn.session.id, [{ id: 'late', role: 'user', content: SAID }]),
            () => app.app.get(SessionStateService, { strict: false }).tools.set(turn.session.id, 'crm', 'late', SAID),
            () => app.turns.submit('desk', SAID, { sessionId: turn.session.id }),
          ];
          for (const write of writes) {
            late.push(
              await Promise.resolve(write()).then(
                () => 'done',
                (error: { code?: string }) => String(error.code),
              ),
            );
          }
          return reply(SAID, { state: { said: SAID } });
        },
      },
    });
    const adapter = options ? adapterOf(options) : memoryAdapter();
    const app = await startApplication({ adapter, orchestrators: [desk] });
    const records = app.app.get(SessionRecords, { strict: false });
    const { id: sessionId } = await app.sessions.create({
      userId: 'secret-user',
      initialSurfaceId: 'secret-surface',
      metadata: { said: SAID },
    });
    await app.turns.execute('desk', `first: ${SAID}`, { sessionId, idempotencyKey: SAID });
    const events: SessionEvent[] = [];
    app.sessions.events.stream.subscribe((event) => events.push(event));
    const result = rejection(app.turns.execute('desk', SAID, { sessionId }), TurnNotFoundError);
    // Awaited below.
    result.catch(() => undefined);
    await eventually(() => running);
    await app.turns.submit('desk', `later: ${SAID}`, { sessionId });
    if (options) expect(await storedText(options)).toContain(SAID);

    expect(await records.erase({ userId: 'secret-user', workspaceId: null })).toEqual({ sessions: 1 });
    await eventually(() => running?.signal.aborted);
    release();
    await result;
    await eventually(() => late.length === 5);
    await app.close();

    expect(late.slice(2)).toEqual(['SESSION_NOT_FOUND', 'SESSION_NOT_FOUND', 'SESSION_NOT_FOUND']);
    expect(events.filter(({ type }) => type === 'deleted')).toEqual([{ type: 'deleted', sessionId, cause: 'erased' }]);
    if (!options) return;
    const text = await storedText(options);
    for (const trace of [SAID, sessionId, running?.id ?? '', 'secret-user', 'secret-surface', 'look up']) {
      expect(text).not.toContain(trace);
    }
    const again = await startApplication({ adapter: adapterOf(options) });
    await expect(again.sessions.create({ id: sessionId, userId: 'ann' })).rejects.toBeInstanceOf(SessionConflictError);
  });
});

describe('an erase', () => {
  it('FIX-90 keeps a session of another user that gets the id of a session meanwhile', async () => {
    const { app, sessions } = await startApplication();
    const records = app.get(SessionRecords, { strict: false });
    const { id } = await sessions.create({ userId: 'ann' });
    const find = sessions.find.bind(sessions);
    sessions.find = async (query) => {
      const found = await find(query);
      for (const each of found) {
        await sessions.delete(each.id);
        await sessions.create({ id: each.id, userId: 'bob' });
      }
      return found;
    };

    expect(await records.erase({ userId: 'ann', allWorkspaces: true })).toEqual({ sessions: 0 });
    expect(await sessions.get(id)).toMatchObject({ userId: 'bob', state: 'created', version: 1 });
  });

  it('NST-25 NST-24 erases only the requested user, workspace or session', async () => {
    const { app, sessions } = await startApplication();
    const records = app.get(SessionRecords, { strict: false });
    const of = async (userId: string, workspaceId?: string) =>
      (await sessions.create({ userId, ...(workspaceId === undefined ? {} : { workspaceId }) })).id;
    const [none, acme, more, globex, other] = [
      await of('bea'),
      await of('bea', 'acme'),
      await of('bea', 'acme'),
      await of('bea', 'globex'),
      await of('ben', 'acme'),
    ];
    const left = async () => (await sessions.find({})).map(({ id }) => id).sort();

    expect(await records.erase({ sessionId: more })).toEqual({ sessions: 1 });
    expect(await records.erase({ sessionId: more })).toEqual({ sessions: 0 });
    expect(await records.erase({ userId: 'bea', workspaceId: 'acme' })).toEqual({ sessions: 1 });
    expect(await left()).toEqual([none, globex, other].sort());
    expect(await records.erase({ userId: 'bea', workspaceId: null })).toEqual({ sessions: 1 });
    expect(await left()).toEqual([globex, other].sort());
    expect(await records.erase({ userId: 'bea', allWorkspaces: true })).toEqual({ sessions: 1 });
    expect(await left()).toEqual([other]);
    await expect(sessions.create({ id: acme, userId: 'bea' })).rejects.toBeInstanceOf(SessionConflictError);
  });

  it('NST-25 includes several pages, expired sessions, and those created meanwhile', async () => {
    const { app, sessions } = await startApplication();
    const records = app.get(SessionRecords, { strict: false });
    for (let n = 0; n < 230; n += 1) {
      const { id } = await sessions.create({ userId: 'bea' });
      if (n % 3 === 0) await sessions.expire(id);
    }
    let made: Promise<unknown> | undefined;
    sessions.events.on('deleted', () => {
      made ??= sessions.create({ userId: 'bea' });
    });
    expect(await records.erase({ userId: 'bea', allWorkspaces: true })).toEqual({ sessions: 231 });
    expect(await sessions.count({ userId: 'bea' })).toBe(0);
  });

  it('NST-25 includes sessions that are created before each count', async () => {
    const { app, sessions } = await startApplication();
    const records = app.get(SessionRecords, { strict: false });
    await sessions.create({ userId: 'bea' });
    const count = sessions.count.bind(sessions);
    let created = 0;
    sessions.count = async (query) => {
      if ((created += 1) < 3) await sessions.create({ userId: 'bea' });
      return count(query);
    };
    expect(await records.erase({ userId: 'bea', allWorkspaces: true })).toEqual({ sessions: 3 });
  });

  it('NST-25 is rejected if the session store does not support it', async () => {
    const { sessions, ...rest } = memoryAdapter();
    const mine = {
      insert: sessions.insert.bind(sessions),
      fetchById: sessions.fetchById.bind(sessions),
      fetchMany: sessions.fetchMany.bind(sessions),
      update: sessions.update.bind(sessions),
      delete: sessions.delete.bind(sessions),
    };
    const app = await startApplication({ adapter: { ...rest, sessions: mine } });
    const sessionId = await app.session();
    const records = app.app.get(SessionRecords, { strict: false });

    await expect(records.erase({ sessionId })).rejects.toBeInstanceOf(SessionsConfigurationError);
    await expect(records.erase({ userId: 'ann', allWorkspaces: true })).rejects.toBeInstanceOf(
      SessionsConfigurationError,
    );
    expect(await app.sessions.get(sessionId)).not.toBeNull();
  });

  it('NST-25 finds no records of a deleted session', async () => {
    const { app, session } = await startApplication();
    const records = app.get(SessionRecords, { strict: false });
    const sessionId = await session();
    await records.erase({ sessionId });
    const [first] = [records.export({ sessionId })[Symbol.asyncIterator]().next()];
    await expect(first).rejects.toBeInstanceOf(SessionNotFoundError);
  });
});
