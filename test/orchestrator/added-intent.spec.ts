import {
  type Checkpoint,
  defineOrchestrator,
  IntentRouter,
  type OrchestratorConfig,
  OrchestratorDriftError,
  reply,
  type SessionsAdapter,
} from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  COMMON_STORES,
  LASTING_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

interface Talk {
  said?: number;
}

const say: OrchestratorConfig<Talk>['intents'][string] = ({ state: { said = 0 } }) =>
  reply(`${said + 1}`, { state: { said: said + 1 } });

/** Turns of sessions that code with more intents has continued stay available to it for one millisecond. */
const SHORT = { retry: { backoff: { type: 'fixed', delayMs: 1 } } } as const;

/** Its turns go to the first of the intents. */
function desk(intents: readonly string[], more: Partial<OrchestratorConfig<Talk>> = {}) {
  return defineOrchestrator<Talk>({
    name: 'desk',
    intents: Object.fromEntries(intents.map((intent) => [intent, say])),
    ...(intents.length > 1 && !more.router ? { route: () => intents[0] } : {}),
    ...more,
  });
}

class FirstIntent extends IntentRouter<Talk> {
  route(_turn: unknown, intents: readonly string[]): string {
    return intents[0];
  }
}

type Desk = ReturnType<typeof desk>;

describe.each(LASTING_STORES)('an orchestrator with other intents over $name', ({ create }) => {
  let open: () => SessionsAdapter;
  let sessionId: string;

  beforeEach(() => {
    open = create();
    sessionId = '';
  });

  /** Deploys one version after the other; each answers one message. */
  async function deploy(version: Desk, act?: (app: Application) => Promise<unknown>): Promise<unknown> {
    const app = await startApplication({ adapter: open(), orchestrators: [version], turns: SHORT });
    try {
      if (act) return await act(app);
      sessionId ||= await app.session();
      return await app.handle(version).execute('hi', { sessionId });
    } finally {
      await app.close();
    }
  }

  it('FIX-17 continues a session after an intent is added, and after the next one', async () => {
    await deploy(desk(['b', 'c']));
    expect(await deploy(desk(['c', 'a', 'b']))).toMatchObject({ turnIndex: 1, reply: '2' });
    const all = desk(['c', 'a', 'b', 'd', 'e']);
    expect(await deploy(all)).toMatchObject({ turnIndex: 2, reply: '3' });
    const stored = await deploy(all, ({ checkpoints }) => checkpoints.load('desk', sessionId));
    expect(stored).toMatchObject({ signature: all.signature, intents: ['c', 'a', 'b', 'd', 'e'] });
  });

  it('FIX-17 continues a session whose orchestrator gets its second intent, with a route or a router', async () => {
    await deploy(desk(['only']));
    expect(await deploy(desk(['only', 'more']))).toMatchObject({ turnIndex: 1 });
    sessionId = '';
    await deploy(desk(['only']));
    expect(await deploy(desk(['only', 'more'], { router: new FirstIntent() }))).toMatchObject({ turnIndex: 1 });
  });

  it('FIX-17 refuses a session after an intent is removed or renamed, and names it', async () => {
    await deploy(desk(['answer', 'refund']));
    for (const changed of [desk(['answer', 'other']), desk(['answer']), desk(['answer', 'Refund', 'more'])]) {
      const error = await rejection(deploy(changed), OrchestratorDriftError);
      expect(error.message).toContain('Intents that were removed or renamed: refund');
    }
    // An intent that was added and taken away again was removed.
    await deploy(desk(['answer', 'refund', 'track']));
    const error = await rejection(deploy(desk(['answer', 'refund'])), OrchestratorDriftError);
    expect(error.message).toContain('removed or renamed: track');
  });

  it('FIX-17 refuses a session when more than an added intent changes', async () => {
    await deploy(desk(['a', 'b']));
    const added = ['a', 'b', 'c'];
    const others: Partial<OrchestratorConfig<Talk>>[] = [
      { router: new FirstIntent() },
      { iterate: true },
      { historyWindow: { maxTokens: 100 } },
      { stateSchema: class {} },
    ];
    for (const other of others) await rejection(deploy(desk(added, other)), OrchestratorDriftError);
    await rejection(deploy(desk(added, { migrations: MIGRATIONS, version: '9' })), OrchestratorDriftError);
    expect(await deploy(desk(added, { version: '2' }))).toMatchObject({ turnIndex: 1 });
  });

  it('FIX-17 takes turns back, forks and adopts a structure beside added intents as before', async () => {
    await deploy(desk(['a', 'b']));
    const added = desk(['a', 'b', 'c']);
    await deploy(added);
    await deploy(added, ({ handle }) => handle<Talk>(added).undo(sessionId));
    expect(await deploy(added)).toMatchObject({ turnIndex: 3, reply: '2' });
    const { id } = (await deploy(desk(['a', 'b', 'c', 'd']), ({ handle }) =>
      handle<Talk>(added).fork(sessionId, { atTurn: 0 }),
    )) as { readonly id: string };
    const copied = (await deploy(added, ({ checkpoints }) => checkpoints.load('desk', id))) as Checkpoint;
    expect(copied.intents).toEqual(['a', 'b', 'c', 'd']);
    expect(await deploy(desk(['z']), (app) => app.handle(added).execute('hi', { sessionId, force: true }))) // prettier-ignore
      .toMatchObject({ reply: '3' });
    expect(await deploy(desk(['z', 'y']))).toMatchObject({ reply: '4' });
  });

  it('FIX-17 judges a checkpoint that lacks its intents by its signature alone', async () => {
    const first = desk(['a', 'b']);
    await deploy(first);
    await deploy(first, async ({ checkpoints }) => {
      const { intents: _, ...latest } = (await checkpoints.load('desk', sessionId)) as Checkpoint;
      await checkpoints.append({ ...latest, turnIndex: 1 }, 'all');
    });
    await rejection(deploy(desk(['a', 'b', 'c'])), OrchestratorDriftError);
    expect(await deploy(first)).toMatchObject({ turnIndex: 2 });
  });

  it('FIX-17 continues a turn that was waiting when an intent was added', async () => {
    const waiting = (intents: readonly string[]) =>
      desk(intents, {
        intents: Object.fromEntries(
          intents.map((intent) => [intent, async (turn) => reply(await turn.waitFor<string>('approval'))]),
        ),
      });
    await deploy(desk(['a', 'b']));
    const id = await deploy(waiting(['a', 'b']), async ({ handle, turns }) => {
      const turn = await handle(waiting(['a', 'b'])).submit('hi', { sessionId });
      await eventually(async () => (await turns.get(turn.id))?.status === 'waiting');
      return turn.id;
    });
    const result = await deploy(waiting(['a', 'b', 'c']), async ({ turns }) => {
      await turns.signal(id as string, 'approval', 'yes');
      return turns.result(id as string);
    });
    expect(result).toMatchObject({ turnIndex: 1, reply: 'yes' });
  });
});

// In a store for one process, no worker can have the added intent: FIX-17 refuses its sessions at once.
describe.each(COMMON_STORES)('old and new code side by side over $name', ({ create }) => {
  /** Starts an application of each. */
  async function deployBoth(former: Desk, latter: Desk) {
    const open = create();
    const old = await startApplication({ adapter: open(), orchestrators: [former] });
    return { open, old, added: await startApplication({ adapter: open(), orchestrators: [latter] }) };
  }

  it.each([
    [['a'], ['a', 'b']],
    [
      ['a', 'b'],
      ['c', 'b', 'a'],
    ],
  ])('FIX-84 leaves sessions that code with more intents has continued to it: %j, %j', async (few, more) => {
    const [former, latter] = [desk(few), desk(more)];
    const { old, added } = await deployBoth(former, latter);
    const sessionId = await old.session();
    expect(await old.handle(former).execute('hi', { sessionId })).toMatchObject({ turnIndex: 0 });
    expect(await added.handle(latter).execute('hi', { sessionId })).toMatchObject({ turnIndex: 1 });

    const { id, turnIndex } = await old.handle(former).execute('hi', { sessionId });
    expect(turnIndex).toBe(2);
    expect(await old.turns.get(id)).toMatchObject({ failures: 0, lost: 0, reply: { text: '3' } });
    const { signature } = (await old.checkpoints.load('desk', sessionId)) as Checkpoint;
    expect(signature).toBe(latter.signature);
  });

  it('FIX-84 leaves them to it after a restart as well, with the sessions that it has begun', async () => {
    const [former, latter] = [desk(['a', 'b']), desk(['c', 'b', 'a'])];
    const { open, old, added } = await deployBoth(former, latter);
    const [begun, continued] = [await added.session(), await added.session()];
    await old.handle(former).execute('hi', { sessionId: continued });
    for (const sessionId of [begun, continued]) await added.handle(latter).execute('hi', { sessionId });
    await old.close();

    const restarted = await startApplication({ adapter: open(), orchestrators: [former] });
    for (const [sessionId, turnIndex] of [[begun, 1] as const, [continued, 2] as const]) {
      const result = await restarted.handle(former).execute('hi', { sessionId });
      expect(result).toMatchObject({ turnIndex, reply: `${turnIndex + 1}` });
      expect(await restarted.turns.get(result.id)).toMatchObject({ failures: 0, lost: 0 });
    }
  });

  it('FIX-84 leaves a turn to newer code that starts later, and counts no attempt', async () => {
    const [former, latter] = [desk(['a', 'b']), desk(['a', 'b', 'c'])];
    const { open, old, added } = await deployBoth(former, latter);
    const sessionId = await added.session();
    await added.handle(latter).execute('hi', { sessionId });
    await Promise.all([old.close(), added.close()]);

    const { lines, logger } = capturingLogger();
    const restarted = await startApplication({ adapter: open(), orchestrators: [former], logger });
    const { id } = await restarted.handle(former).submit('hi', { sessionId });
    await eventually(() =>
      lines.some((line) => line.includes('waits for orchestrator desk, version 1 with more intents')),
    );
    await startApplication({ adapter: open(), orchestrators: [latter] });
    expect(await restarted.turns.result(id)).toMatchObject({ turnIndex: 1 });
    expect(await restarted.turns.get(id)).toMatchObject({ failures: 0, lost: 0 });
  });

  it('FIX-84 leaves a turn whose route has chosen an intent that it does not have', async () => {
    const former = desk(['a', 'b']);
    const latter = desk(['c', 'a', 'b'], {
      intents: { c: async (turn) => reply(await turn.waitFor<string>('approval')), a: say, b: say },
      route: () => 'c',
    });
    const { old, added } = await deployBoth(former, latter);
    const { id } = await added.handle(latter).submit('hi', { sessionId: await old.session() });
    await eventually(async () => (await old.turns.get(id))?.status === 'waiting');
    await old.turns.signal(id, 'approval', 'yes');

    expect(await old.turns.result(id)).toMatchObject({ reply: 'yes' });
    expect(await old.turns.get(id)).toMatchObject({ failures: 0, lost: 0 });
  });
});

const MIGRATIONS = [{ from: '8', to: '9', migrate: (state: object) => state }];
