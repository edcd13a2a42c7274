import {
  defineOrchestrator,
  type OrchestratorConfig,
  OrchestratorDriftError,
  SessionsConfigurationError,
  type StateMigration,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { LASTING_STORES, rejection, startApplication } from '../support/running-application.js';

interface State {
  trail?: string[];
}

/** Its state is the list of versions that it went through. */
function deskOf(version: string, { migrations = [], ...extra }: Partial<OrchestratorConfig<State>> = {}) {
  return defineOrchestrator<State>({
    name: 'desk',
    version,
    migrations,
    intents: { answer: ({ state }) => JSON.stringify(state) },
    ...extra,
  });
}

function migration(from: string, to: string): StateMigration {
  return {
    from,
    to,
    migrate: (state) => {
      const changed = state as State;
      changed.trail = [...(changed.trail ?? []), `${from} to ${to}`];
      return Promise.resolve(changed);
    },
  };
}

/** The same intents in another structure. */
const other: Partial<OrchestratorConfig<State>> = { route: () => 'answer' };

describe.each(LASTING_STORES)('versions of an orchestrator over $name', ({ create }) => {
  /** A session with one turn of version 1. */
  async function begun(open: ReturnType<typeof create>) {
    const old = deskOf('1', { initialState: () => ({ trail: ['1'] }) });
    const app = await startApplication({ adapter: open(), orchestrators: [old] });
    const sessionId = await app.session();
    await app.handle(old).execute('hi', { sessionId });
    await app.close();
    return sessionId;
  }

  it('BOT-24 migrates the state from version to version when it is loaded, once, and records it', async () => {
    const open = create();
    const sessionId = await begun(open);
    const desk = deskOf('3', { ...other, migrations: [migration('2', '3'), migration('1', '2')] });
    const { handle, turns, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const migrated: unknown[] = [];
    handle(desk).on('drift-checked', (event) => migrated.push([event.drifted, event.migrated]));

    const { id, reply } = await handle(desk).execute('hi', { sessionId });
    expect(reply).toBe('{"trail":["1","1 to 2","2 to 3"]}');
    expect(await turns.get(id)).toMatchObject({ report: { migrated: ['1', '2', '3'] } });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ version: '3', signature: desk.signature });
    expect(await checkpoints.load('desk', sessionId, 0)).toMatchObject({ version: '1', state: { trail: ['1'] } });

    const next = await handle(desk).execute('hi', { sessionId });
    expect(next.reply).toBe(reply);
    expect((await turns.get(next.id))?.report).not.toHaveProperty('migrated');
    expect(migrated).toEqual([
      [true, ['1', '2', '3']],
      [false, []],
    ]);
  });

  it('BOT-24 rejects a missing migration path as drift, even for the same structure; force adopts the state', async () => {
    const open = create();
    const sessionId = await begun(open);
    const desk = deskOf('3', { migrations: [migration('2', '3')] });
    const { handle, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('hi', { sessionId }), OrchestratorDriftError);
    expect(error.message).toContain('was written by version 1, and no migration leads from it to 3');
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ turnIndex: 0, version: '1' });

    await handle(desk).execute('hi', { sessionId, force: true });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ version: '3', state: { trail: ['1'] } });
    expect(await handle(desk).execute('hi', { sessionId })).toMatchObject({ reply: '{"trail":["1"]}' });
  });

  it('BOT-24 needs no migration for another version of the same structure', async () => {
    const open = create();
    const sessionId = await begun(open);
    const desk = deskOf('2');
    const { handle, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('hi', { sessionId })).toMatchObject({ reply: '{"trail":["1"]}', turnIndex: 1 });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ version: '2' });
  });

  it('BOT-24 BOT-08 fails the turn if a migration throws, and leaves the session unchanged', async () => {
    const open = create();
    const sessionId = await begun(open);
    const broken = { from: '1', to: '2', migrate: () => Promise.reject(new Error('no such column')) };
    const desk = deskOf('2', { migrations: [broken] });
    const first = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 1 } },
    });
    const error = await rejection(first.handle(desk).execute('hi', { sessionId }), TurnFailedError);
    expect(error.failure?.message).toBe('no such column');
    await first.close();

    const mended = deskOf('2', { migrations: [migration('1', '2')] });
    const { handle } = await startApplication({ adapter: open(), orchestrators: [mended] });
    expect(await handle(mended).execute('hi', { sessionId })).toMatchObject({
      reply: '{"trail":["1","1 to 2"]}',
      turnIndex: 1,
    });
  });

  it('BOT-24 BOT-07 requires JSON from a migration', async () => {
    const open = create();
    const sessionId = await begun(open);
    const desk = deskOf('2', { migrations: [{ from: '1', to: '2', migrate: () => ({ at: new Date() }) }] });
    const { handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('hi', { sessionId }), TurnFailedError);
    expect(error.failure).toMatchObject({
      code: 'STATE_NOT_SERIALIZABLE',
      details: { path: 'The state migrated from 1 to 2.at' },
    });
  });

  it('BOT-35 rejects state of a newer version in an older one, with the reason', async () => {
    const open = create();
    const sessionId = await begun(open);
    const newer = deskOf('2', { migrations: [migration('1', '2')] });
    const app = await startApplication({ adapter: open(), orchestrators: [newer] });
    await app.handle(newer).execute('hi', { sessionId });
    await app.close();

    const older = deskOf('1');
    const { handle, turns, checkpoints } = await startApplication({
      adapter: open(),
      orchestrators: [older],
      // It stays available to newer workers for the longest pause.
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const error = await rejection(handle(older).execute('hi', { sessionId }), OrchestratorDriftError);
    expect(error.message).toContain('was written by version 2, which is newer than 1 in this process');
    // A worker of the newer version might have taken it.
    expect((await turns.list({ sessionId, status: 'failed' }))[0]).toMatchObject({ failures: 3 });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ turnIndex: 1, version: '2' });
  });
});

describe('migrations', () => {
  it.each([
    ['must be a list of { from, to, migrate }.', 'all'],
    ['item 0 must be { from, to, migrate }: two versions and a function.', [null]],
    [
      'item 1 must be { from, to, migrate }: two versions and a function.',
      [migration('1', '3'), { from: '2', to: '3' }],
    ],
    [
      'must have one per source version. Duplicate: 1.',
      [migration('1', '2'), migration('1', '3'), migration('2', '3')],
    ],
    ['must lead from version 1 to version 3.', [migration('1', '2')]],
    ['must lead from version 1 to version 3.', [migration('1', '2'), migration('2', '1')]],
  ])('BOT-24 %s', (problem, migrations) => {
    const define = () => deskOf('3', { migrations: migrations as StateMigration[] });
    expect(define).toThrow(SessionsConfigurationError);
    expect(define).toThrow(`Orchestrator desk: migrations ${problem}`);
  });
});
