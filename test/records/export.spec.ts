import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  type RecordsOf,
  reply,
  type SessionRecord,
  SessionNotFoundError,
  SessionRecords,
  SessionStateService,
  type SessionsAdapter,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { type CoreDatabase } from '../../lib/store/core/tables.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { type Application, LIVE_STORES, startApplication } from '../support/running-application.js';

describe.each(LIVE_STORES)('an export over $name', ({ open }) => {
  it('NST-25 exports everything of a session in a stable order, and marks secrets', async () => {
    const app = await start(open());
    const { records, sessionId } = app;
    const tools = app.app.get(SessionStateService, { strict: false }).tools;
    await tools.set(sessionId, 'crm', 'cursor', 'before', { secret: true });
    await tools.set(sessionId, 'crm', 'cursor', 'page 7');
    await tools.set(sessionId, 'crm', 'token', 'hunter2', { secret: true });
    await tools.set(sessionId, 'crm', 'deleted', 'gone');
    await tools.delete(sessionId, 'crm', 'deleted');
    await app.turns.execute('desk', 'hello', { sessionId });
    const [first] = await app.turns.list({ sessionId });
    const second = await app.turns.submit('desk', 'wait', { sessionId });
    await eventually(async () => (await app.turns.get(second.id))?.status === 'waiting');
    await app.turns.signal(second.id, 'approval', { granted: true });
    await app.turns.result(second.id);
    const session = await app.sessions.get(sessionId);

    const exported = await all(records.export({ sessionId }));

    expect(exported.every((record) => record.sessionId === sessionId)).toBe(true);
    expect(exported.map(titleOf)).toEqual([
      'session',
      'message hello',
      'message done',
      'message wait',
      'message done',
      `turn ${first.id}`,
      'step look up',
      'event "looking"',
      `turn ${second.id}`,
      'step approval',
      'step look up',
      'signal approval',
      'event "looking"',
      'event {"attempt":1}',
      'event "looking"',
      'checkpoint 1',
      'checkpoint 0',
      'document crm/cursor',
      'document crm/token, secret',
    ]);
    expect(exported[0]).toEqual({ type: 'session', sessionId, session });
    expect(exported.find(({ type }) => type === 'turn')).toMatchObject({ turn: first });
    expect(exported.find((record) => titleOf(record) === 'document crm/cursor')).toMatchObject({
      document: { value: { value: 'page 7', secret: false }, batches: [] },
    });
    const lines = await all(records.exportLines({ sessionId }));
    expect(lines.join('')).not.toMatch(/hunter2|"before"/);
    expect(lines.every((line) => line.endsWith('}\n') && line.indexOf('\n') === line.length - 1)).toBe(true);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(JSON.parse(JSON.stringify(exported)));
  });
});

describe('an export', () => {
  it('NST-25 does not show secrets that an iteration wrote', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      maxIterations: 2,
      intents: {
        answer: async (turn: TurnContext) => {
          turn.modules.tools.set('crm', 'token', 'hunter2', { secret: true });
          await turn.modules.task.create({ id: `t${turn.iteration}` });
          return reply('done');
        },
      },
    });
    const app = await startApplication({ orchestrators: [desk] });
    const sessionId = await app.session();
    await app.turns.execute('desk', 'go', { sessionId });
    const exported = await all(app.app.get(SessionRecords, { strict: false }).export({ sessionId }));

    const steps = exported.flatMap((record) => (record.type === 'step' ? [record.step] : []));
    expect(steps).toMatchObject([
      { value: { writes: [{ module: 'tools', tool: 'crm', key: 'token' }, { module: 'task' }] } },
    ]);
    expect(JSON.stringify(exported)).not.toContain('hunter2');
  });

  it('NST-25 reads pages only on demand', async () => {
    const calls: string[] = [];
    const app = await start(recordingAdapter(memoryAdapter(), calls));
    const { records, sessionId, adapter } = app;
    const message = { role: 'user', content: 'x' } as const;
    for (let n = 0; n < 120; n += 1) await adapter.conversations.append(sessionId, [{ ...message, id: `m${n}` }]);
    for (let n = 0; n < 120; n += 1) {
      await adapter.state.set({ namespace: 'n', scope: '', key: `k${n}`, sessionId }, n);
      await adapter.checkpoints.append(checkpoint(sessionId, n), 'all');
    }
    calls.length = 0;
    const read = (port: string): number => calls.filter((call) => call === port).length;

    for await (const record of records.export({ sessionId })) if (record.type === 'message') break;
    expect(calls.filter((call) => !call.startsWith('turns.') && !call.startsWith('events.'))).toEqual([
      'sessions.fetchById',
      'conversations.page',
      'sessions.fetchById',
    ]);
    const exported = await all(records.export({ sessionId }));
    expect(exported).toHaveLength(1 + 120 + 120 + 120);
    expect([read('conversations.page'), read('checkpoints.history'), read('state.list')]).toEqual([1 + 3, 3, 3]);
    const places = exported.flatMap((record) => (record.type === 'message' ? [record.message.position] : []));
    expect(places).toEqual(Array.from({ length: 120 }, (_, n) => n + 1));
  });

  it('NST-25 NST-24 exports only the requested user, workspace or session', async () => {
    const { records, sessions } = await start(memoryAdapter());
    const of = async (userId: string, workspaceId?: string) =>
      (await sessions.create({ userId, ...(workspaceId === undefined ? {} : { workspaceId }) })).id;
    const [none, acme, globex] = [await of('bea'), await of('bea', 'acme'), await of('bea', 'globex')];
    const [more] = [await of('bea', 'acme'), await of('ben', 'acme')];
    await sessions.expire(more);
    const idsOf = async (asked: RecordsOf) =>
      (await all(records.export(asked))).map(({ sessionId }) => sessionId).sort();

    expect(await idsOf({ sessionId: acme })).toEqual([acme]);
    expect(await idsOf({ userId: 'bea', workspaceId: 'acme' })).toEqual([acme, more].sort());
    expect(await idsOf({ userId: 'bea', workspaceId: null })).toEqual([none]);
    expect(await idsOf({ userId: 'bea', allWorkspaces: true })).toEqual([none, acme, globex, more].sort());
    expect(await idsOf({ userId: 'nobody', allWorkspaces: true })).toEqual([]);
    await expect(all(records.export({ sessionId: 'nobody' }))).rejects.toBeInstanceOf(SessionNotFoundError);
  });

  it('NST-25 contains every session of a user, even those used meanwhile', async () => {
    const { records, sessions } = await start(memoryAdapter());
    const ids: string[] = [];
    for (let n = 0; n < 250; n += 1) ids.push((await sessions.create({ userId: 'bea' })).id);
    const seen: string[] = [];
    for await (const { sessionId } of records.export({ userId: 'bea', workspaceId: null })) {
      seen.push(sessionId);
      // The last sessions become the most recent ones.
      if (seen.length === 1) for (const id of ids.slice(0, 20)) await sessions.touch(id);
    }
    expect(seen.sort()).toEqual(ids.sort());
  });

  it.each(['before', 'after'])(
    'FIX-90 ends the records of a session %s its messages if another user gets its id',
    async (when) => {
      const { records, sessions, turns } = await start(memoryAdapter());
      await sessions.create({ id: 'room-1', userId: 'bea' });
      await turns.execute('desk', 'of bea', { sessionId: 'room-1' });
      const titles: string[] = [];
      for await (const record of records.export({ userId: 'bea', allWorkspaces: true })) {
        titles.push(titleOf(record));
        if (titles.length !== (when === 'before' ? 1 : 3)) continue;
        await sessions.delete('room-1');
        await sessions.create({ id: 'room-1', userId: 'bob' });
        await turns.execute('desk', 'of bob', { sessionId: 'room-1' });
      }
      expect(titles).toEqual(when === 'before' ? ['session'] : ['session', 'message of bea', 'message done']);
    },
  );

  it('NST-25 leaves out messages that cannot be read, logs them, and exports all others', async () => {
    const { records, adapter, sessions, logs } = await start(memoryAdapter());
    const message = { role: 'user', content: 'x' } as const;
    for (const id of ['s1', 's2']) {
      await sessions.create({ id, userId: 'bea' });
      const drafts = Array.from({ length: 120 }, (_, n) => ({ ...message, id: `m${n + 1}` }));
      await adapter.conversations.append(id, drafts);
    }
    const broken = [1, 60, 61, 120];
    const { db } = adapter.turns as unknown as { db: CoreDatabase };
    for (const position of broken) {
      await db.write((tx) => tx.messages.update({ sessionId: 's2', position }, { body: '{broken' }));
    }
    const exported = await all(records.export({ userId: 'bea', allWorkspaces: true }));

    const found = exported.flatMap((record) =>
      record.type === 'message' ? [`${record.sessionId} ${record.message.position}`] : [],
    );
    const places = Array.from({ length: 120 }, (_, n) => n + 1);
    const readable = places.filter((position) => !broken.includes(position));
    expect(found.sort()).toEqual([...places.map((n) => `s1 ${n}`), ...readable.map((n) => `s2 ${n}`)].sort());
    expect(logs.filter((line) => line.includes('Skipped a corrupt message'))).toHaveLength(broken.length);
  });

  it('NST-25 leaves out the other steps of a turn with one that cannot be read, and exports the rest', async () => {
    const { records, adapter, sessionId, turns, logs } = await start(memoryAdapter());
    await turns.execute('desk', 'hello', { sessionId });
    const { db } = adapter.turns as unknown as { db: CoreDatabase };
    const [{ id: turnId }] = await turns.list({ sessionId });
    await db.write((tx) => {
      for (const row of tx.steps.ofTurn(turnId)) tx.steps.update(row, { value: '{broken' });
    });
    const titles = (await all(records.export({ sessionId }))).map(titleOf);
    expect(titles).toEqual([
      'session',
      'message hello',
      'message done',
      `turn ${turnId}`,
      'event "looking"',
      'checkpoint 0',
    ]);
    expect(logs.filter((line) => line.includes('Skipped a corrupt step'))).toHaveLength(1);
  });

  it('NST-25 contains sessions that are created before each count', async () => {
    const { records, sessions } = await start(memoryAdapter());
    const ids = [(await sessions.create({ userId: 'bea' })).id];
    const count = sessions.count.bind(sessions);
    sessions.count = async (query) => {
      if (ids.length < 3) ids.push((await sessions.create({ userId: 'bea' })).id);
      return count(query);
    };
    const exported = await all(records.export({ userId: 'bea', allWorkspaces: true }));
    expect(exported.map(({ sessionId }) => sessionId).sort()).toEqual(ids.sort());
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['an empty object', {}],
    ['an invalid id', { sessionId: '' }],
    ['a user without a workspace option', { userId: 'ann' }],
    ['a session and a user', { sessionId: 's', userId: 'ann' }],
    ['a workspace and all of them', { userId: 'ann', workspaceId: 'acme', allWorkspaces: true }],
    ['an `allWorkspaces` of false', { userId: 'ann', allWorkspaces: false }],
    ['an undefined workspace', { userId: 'ann', workspaceId: undefined }],
    ['a workspace without a user', { workspaceId: 'acme' }],
    ['an undefined user', { userId: undefined, allWorkspaces: true }],
    ['an unknown key', { sessionId: 's', also: 1 }],
  ])('NST-25 refuses %s, and erases nothing', async (_, of) => {
    const { records, sessions, sessionId } = await start(memoryAdapter());
    expect(() => records.export(of as RecordsOf)).toThrow(InvalidInputError);
    expect(() => records.exportLines(of as RecordsOf)).toThrow(InvalidInputError);
    await expect(records.erase(of as RecordsOf)).rejects.toBeInstanceOf(InvalidInputError);
    expect(await sessions.get(sessionId)).not.toBeNull();
  });
});

type Started = Application & {
  readonly records: SessionRecords;
  readonly sessionId: string;
  readonly logs: readonly string[];
};

async function start(adapter: SessionsAdapter): Promise<Started> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn: TurnContext) => {
        await turn.emit({ type: 'delta', data: 'looking' });
        await turn.step('look up', () => 7);
        if (turn.input.text === 'wait') await turn.waitFor('approval');
        return reply('done');
      },
    },
  });
  const { lines: logs, logger } = capturingLogger();
  const app = await startApplication({ adapter, orchestrators: [desk], logger });
  const sessionId = await app.session();
  return Object.assign(app, { records: app.app.get(SessionRecords, { strict: false }), sessionId, logs });
}

function titleOf(record: SessionRecord): string {
  switch (record.type) {
    case 'session':
      return record.type;
    case 'message':
      return `message ${record.message.content as string}`;
    case 'turn':
      return `turn ${record.turn.id}`;
    case 'step':
      return `step ${record.step.name}`;
    case 'signal':
      return `signal ${record.signal.name}`;
    case 'event':
      return `event ${JSON.stringify(record.event.data)}`;
    case 'checkpoint':
      return `checkpoint ${record.checkpoint.turnIndex}`;
    case 'document': {
      const { scope, key } = record.name;
      return `document ${scope}/${key}${'secret' in record ? ', secret' : ''}`;
    }
  }
}

function checkpoint(sessionId: string, turnIndex: number) {
  const rest = { lastRoute: [], signature: 's', version: '1', summarizedThrough: 0 };
  return { orchestrator: 'desk', sessionId, turnIndex, state: {}, ...rest };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
