import {
  type Checkpoint,
  defineOrchestrator,
  IntentRouter,
  type OrchestratorConfig,
  OrchestratorDriftError,
  reply,
  type SessionsAdapter,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, LASTING_STORES, rejection, startApplication } from '../support/running-application.js';

interface Talk {
  said?: number;
}

const say: OrchestratorConfig<Talk>['intents'][string] = ({ state: { said = 0 } }) =>
  reply(`${said + 1}`, { state: { said: said + 1 } });

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
    const app = await startApplication({ adapter: open(), orchestrators: [version] });
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

const MIGRATIONS = [{ from: '8', to: '9', migrate: (state: object) => state }];
