import {
  defineOrchestrator,
  END_TURN,
  memoryAdapter,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  OrchestratorDriftError,
  reply,
  type SessionsAdapter,
} from 'nestjs-agent-sessions';
import { type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { type Application, gate, LASTING_STORES, rejection, startApplication } from '../support/running-application.js';

interface Desk {
  seen?: string[];
  texts?: string[];
}

/** The former version, which stores the messages in `seen`. */
const former = deskOf({ version: '1' }, ({ seen = [] }, text) => ({ seen: [...seen, text] }));

/** The present version, which stores them in `texts`. */
const present = deskOf(
  {
    version: '2',
    migrations: [{ from: '1', to: '2', migrate: ({ seen }) => ({ texts: seen }) }],
  },
  ({ texts = [] }, text) => ({ texts: [...texts, text] }),
);

describe.each(LASTING_STORES)('another version while a turn is in flight, over $name', ({ create }) => {
  it('BOT-35 BOT-24 continues a turn of the former version on the migrated state', async () => {
    const open = create();
    const sessionId = await leave(open, former, 'interrupted');
    const app = await startApplication({ adapter: open(), orchestrators: [present] });
    await app.handle(present).execute('after', { sessionId });
    const [, interrupted, after] = await app.turns.list({ sessionId });
    expect(interrupted).toMatchObject({ status: 'awaiting-input', turnIndex: 1, version: '1' });
    expect(after).toMatchObject({ turnIndex: 2 });
    expect((await app.checkpoints.load('desk', sessionId))?.state).toEqual({
      texts: ['first', 'interrupted', 'after'],
    });
  });

  it('BOT-35 BOT-05 repeats the iterations of the former version with their stored step results', async () => {
    const open = create();
    const did: string[] = [];
    const { pass } = gate();
    const iterating = (version: string, key: keyof Desk): OrchestratorDefinition<Desk> =>
      defineOrchestrator<Desk>({
        name: 'desk',
        version,
        iterate: true,
        route: async ({ iteration, signal }) => {
          if (version === '1' && iteration === 2) await pass(signal);
          return iteration < 3 ? 'note' : END_TURN;
        },
        intents: {
          note: async (turn) => {
            const done = await turn.step('effect', () => `${version}:${turn.iteration}`);
            did.push(`${version} ${done}`);
            return { [key]: [...(turn.state[key] ?? []), done] };
          },
        },
      });
    const first = await startApplication({ adapter: open(), orchestrators: [iterating('1', 'seen')] });
    const sessionId = await first.session();
    const { id } = await first.turns.submit('desk', 'hi', { sessionId });
    await eventually(() => did.length === 2);
    await first.close();
    const second = await startApplication({ adapter: open(), orchestrators: [iterating('2', 'texts')] });
    await second.turns.result(id);
    expect((await second.checkpoints.load('desk', sessionId))?.state).toEqual({ texts: ['1:0', '1:1', '2:2'] });
    expect(did).toEqual(['1 1:0', '1 1:1', '2 1:0', '2 1:1', '2 2:2']);
  });

  it('BOT-35 fails with a typed error without a migration, and continues once the state is adopted', async () => {
    const open = create();
    const sessionId = await leave(open, former, 'interrupted');
    const other = defineOrchestrator<Desk>({
      name: 'desk',
      version: '2',
      route: () => 'tell',
      intents: { tell: ({ state }) => reply(`had ${JSON.stringify(state)}`), more: () => 'more' },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [other] });
    await eventually(async () => (await app.turns.list({ sessionId }))[1].status === 'failed');
    const [, { id }] = await app.turns.list({ sessionId });
    await rejection(app.turns.result(id), OrchestratorDriftError);
    await rejection(app.handle(other).execute('plain', { sessionId }), OrchestratorDriftError);
    const adopted = await app.handle(other).execute('adopt', { sessionId, force: true });
    expect(adopted).toMatchObject({ turnIndex: 1, reply: 'had {"seen":["first"]}' });
    expect(await app.handle(other).execute('on', { sessionId })).toMatchObject({ turnIndex: 2 });
  });

  it('BOT-35 rejects a session of a newer version after a rollback, and continues once that version is back', async () => {
    const open = create();
    const sessionId = await leave(open, present, null);
    // A short pause: no newer worker starts.
    const turns = { retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } } as const;
    const back = await startApplication({ adapter: open(), orchestrators: [former], turns });
    const error = await rejection(back.handle(former).execute('lost', { sessionId }), OrchestratorDriftError);
    expect(error.message).toContain('was written by version 2, which is newer than 1 in this process');
    expect((await back.turns.list({ sessionId }))[1]).toMatchObject({ status: 'failed', failures: 2 });
    await back.close();
    const again = await startApplication({ adapter: open(), orchestrators: [present] });
    expect(await again.handle(present).execute('found', { sessionId })).toMatchObject({ turnIndex: 1 });
    expect((await again.checkpoints.load('desk', sessionId))?.state).toEqual({ texts: ['first', 'found'] });
  });
});

// A file has one worker at a time.
for (const { name, create } of LASTING_STORES.filter((store) => store.name !== 'sqlite')) {
  it(`BOT-35 BOT-24 leaves a session of the newer version to its workers while both are deployed, without a failure, over ${name}`, async () => {
    const open = create();
    const sessionId = await leave(open, present, null);
    const told: string[] = [];
    const warn = (line: unknown): void => void told.push(String(line));
    const adapter = open();
    let releases = 0;
    const release: TurnLedger['release'] = async (...args) => {
      releases += 1;
      return adapter.turns.release(...args);
    };
    const old = await startApplication({
      adapter: { ...adapter, turns: Object.assign(Object.create(adapter.turns) as TurnLedger, { release }) },
      orchestrators: [former],
      logger: { log: warn, warn, error: warn },
    });
    const { id } = await old.handle(former).submit('by the former', { sessionId });
    // More releases than a turn has attempts.
    await eventually(() => releases > 3);
    expect(told.filter((line) => line.includes('version 2 or newer'))).toHaveLength(1);
    const next = await startApplication({
      adapter: open(),
      orchestrators: [present],
      turns: { queue: new InProcessQueue(4) },
    });
    expect(await next.turns.result(id)).toMatchObject({ turnIndex: 1 });
    expect(await next.turns.get(id)).toMatchObject({ failures: 0 });
    expect((await next.checkpoints.load('desk', sessionId))?.state).toEqual({ texts: ['first', 'by the former'] });
  });
}

it('BOT-35 leaves a turn that began long ago to newer workers as well', async () => {
  // The first records are an hour old.
  let behindMs = 3_600_000;
  const adapter = memoryAdapter({ clock: () => Date.now() - behindMs });
  const sessionId = await leave(() => adapter, present, null);
  const turnId = mintId();
  await adapter.turns.accept(turnRequest(turnId, { sessionId, request: { input: { text: 'waiting' } } }));
  const claimed = await adapter.turns.claim(sessionId, claimRequest(mintId()));
  const step = { kind: 'wait' as const, iteration: 0, intent: 'note', parent: '', name: 'go', key: 0 };
  await adapter.turns.wait(claimed!.hold, { signal: 'go', step });
  behindMs = 0;
  await adapter.turns.signal(turnId, 'go', null);

  let releases = 0;
  const release: TurnLedger['release'] = async (...args) => {
    releases += 1;
    return adapter.turns.release(...args);
  };
  const old = await startApplication({
    adapter: { ...adapter, turns: Object.assign(Object.create(adapter.turns) as TurnLedger, { release }) },
    orchestrators: [former],
    turns: { retry: { backoff: { type: 'fixed', delayMs: 60_000 } } },
  });
  await eventually(() => releases > 3);
  expect(await old.turns.get(turnId)).toMatchObject({ failures: 0 });
  const next = await startApplication({ adapter, orchestrators: [present], turns: { queue: new InProcessQueue(4) } });
  expect(await next.turns.result(turnId)).toMatchObject({ turnIndex: 1 });
});

/** An orchestrator that adds each text to its state. */
function deskOf(
  options: Pick<OrchestratorConfig<Desk>, 'version' | 'migrations'>,
  add: (state: Readonly<Desk>, text: string) => Desk,
): OrchestratorDefinition<Desk> {
  return defineOrchestrator<Desk>({
    name: 'desk',
    ...options,
    intents: { note: ({ state, input }) => add(state, input.text) },
  });
}

/** Leaves a session as a process does that settled one turn and was killed in the next one. @param text of the next turn; `null` for no next turn */
async function leave(
  open: () => SessionsAdapter,
  desk: OrchestratorDefinition<Desk>,
  text: string | null,
): Promise<string> {
  const app: Application = await startApplication({ adapter: open(), orchestrators: [desk] });
  const sessionId = await app.session();
  await app.handle(desk).execute('first', { sessionId });
  await app.close();
  if (text === null) return sessionId;
  const adapter = open();
  await adapter.init?.();
  await adapter.turns.accept(turnRequest(mintId(), { sessionId, version: desk.version, request: { input: { text } } }));
  await adapter.turns.claim(sessionId, claimRequest(mintId(), { leaseMs: 150 }));
  await adapter.close?.();
  return sessionId;
}
