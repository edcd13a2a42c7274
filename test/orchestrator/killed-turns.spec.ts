import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { adapterOf, type StoreOptions, STORES } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/iterating-worker.mjs');
const STEPS = [0, 1, 2, 3, 4];
/** Every place between two steps of a turn, every place inside one, and nowhere. */
const PLACES = [
  ...STEPS.flatMap((step) => [`route ${step}`, `inside ${step}`, `after ${step}`]),
  'route 5',
  'nowhere',
] as const;
const LONG = { limitMs: 60_000 };

/** What a worker says. */
interface Said {
  readonly what: 'ready' | 'routed' | 'did' | 'stopped';
  readonly turnId: string;
  readonly attempt: number;
  readonly version: string;
  readonly iteration?: number;
  readonly key?: string;
}

const children: ChildProcess[] = [];

afterAll(async () => {
  await Promise.all(children.map(kill));
});

/** @param said collects what it says */
async function startWorker(store: StoreOptions, said: Said[], setup: object = {}): Promise<ChildProcess> {
  const child = fork(PROGRAM, [JSON.stringify({ store, version: '1', attempts: 3, ...setup })], { execArgv: [] });
  children.push(child);
  let ready = false;
  child.on('message', (message: Said) => {
    if (message.what === 'ready') ready = true;
    else said.push(message);
  });
  await eventually(() => ready || child.signalCode !== null, LONG);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** An API that runs nothing itself. */
async function startApi(store: StoreOptions, version = '1'): Promise<Application> {
  const desk = defineOrchestrator({ name: 'desk', version, route: () => 'work', intents: { work: () => 'not here' } });
  return startApplication({ adapter: adapterOf(store), orchestrators: [desk], role: 'submit' });
}

async function statusOf({ turns }: Application, turnId: string): Promise<string | undefined> {
  return (await turns.get(turnId))?.status;
}

async function killEverywhere(store: StoreOptions): Promise<void> {
  const api = await startApi(store);
  const said: Said[] = [];
  const first = await startWorker(store, said);
  const begun = await Promise.all(
    PLACES.map(async (dieAt) => {
      const sessionId = await api.session();
      const { id } = await api.turns.submit('desk', 'turn', { sessionId, attributes: { dieAt } });
      return { dieAt, sessionId, id };
    }),
  );
  const stopped = (): number => said.filter(({ what }) => what === 'stopped').length;
  await eventually(() => stopped() === PLACES.length - 1, LONG);
  const [unharmed] = begun.slice(-1);
  await eventually(async () => (await statusOf(api, unharmed.id)) === 'awaiting-input', LONG);
  await kill(first);
  const behind = await Promise.all(
    begun.map(async ({ sessionId }) => api.turns.submit('desk', 'behind', { sessionId })),
  );

  // Both find the same turns, where the store lets several work.
  await Promise.all((api.adapter.shared ? [1, 2] : [1]).map(() => startWorker(store, said)));
  for (const { id } of behind) await eventually(async () => (await statusOf(api, id)) === 'awaiting-input', LONG);

  for (const { dieAt, sessionId, id } of begun) {
    const [place, number] = dieAt.split(' ');
    const at = Number(number);
    const of = (what: Said['what'], attempt?: number): Said[] =>
      said.filter((one) => one.turnId === id && one.what === what && attempt === (attempt && one.attempt));
    // As if nobody had been killed.
    const path = [...STEPS.map((step) => `turn ${step}`), ...STEPS.map((step) => `behind ${step}`)];
    expect([dieAt, (await api.checkpoints.load('desk', sessionId))?.state]).toEqual([dieAt, { trail: path }]);
    expect(await api.checkpoints.history('desk', sessionId)).toHaveLength(2);
    expect((await api.adapter.conversations.page(sessionId)).filter(({ role }) => role === 'user')).toMatchObject([
      { content: 'turn', turnId: id },
      { content: 'behind' },
    ]);
    expect(await api.turns.get(id)).toMatchObject({ turnIndex: 0, failures: place === 'nowhere' ? 0 : 1 });
    // A step that was not acknowledged is done again, with the same key.
    const done = of('did').map(({ iteration }) => iteration);
    expect([dieAt, done]).toEqual([dieAt, place === 'inside' ? [...STEPS, at].sort() : STEPS]);
    expect(new Set(of('did').map(({ key }) => key)).size).toBe(STEPS.length);
    // And it goes on where it was, not from the beginning.
    if (place !== 'nowhere') expect([dieAt, of('routed', 2)[0].iteration]).toEqual([dieAt, at]);
  }
}

async function poison(store: StoreOptions): Promise<void> {
  const api = await startApi(store);
  const said: Said[] = [];
  const sessionId = await api.session();
  const { id } = await api.turns.submit('desk', 'poison', { sessionId, attributes: { dieAt: 'everywhere' } });
  const behind = await api.turns.submit('desk', 'behind', { sessionId });
  for (const attempt of [1, 2]) {
    const worker = await startWorker(store, said, { attempts: 2 });
    await eventually(() => worker.signalCode === 'SIGKILL', LONG);
    expect(said.filter(({ turnId }) => turnId === id).map((one) => one.attempt)).toHaveLength(attempt);
  }
  await startWorker(store, said, { attempts: 2 });
  await eventually(async () => (await statusOf(api, behind.id)) === 'awaiting-input', LONG);
  expect(await api.turns.get(id)).toMatchObject({ status: 'failed', failures: 2, error: { code: 'WORKER_LOST' } });
  expect(await api.turns.get(behind.id)).toMatchObject({ turnIndex: 0, failures: 0 });
  const { trail } = (await api.checkpoints.load('desk', sessionId))?.state as { trail: string[] };
  expect(trail).toEqual(STEPS.map((step) => `behind ${step}`));
}

async function rollOut(store: StoreOptions): Promise<void> {
  const api = await startApi(store);
  const said: Said[] = [];
  const former = await startWorker(store, said);
  const sessionIds = await Promise.all(Array.from({ length: 8 }, () => api.session()));
  const say = (by: Application, text: string) => async (sessionId: string, index: number) =>
    by.turns.submit('desk', text, {
      sessionId,
      attributes: text === 'second' && index < 2 ? { dieAt: 'after 2' } : {},
    });
  const over = async (turns: readonly { id: string }[]): Promise<void> => {
    for (const { id } of turns) await eventually(async () => (await statusOf(api, id)) === 'awaiting-input', LONG);
  };
  await over(await Promise.all(sessionIds.map(say(api, 'first'))));
  // Two are in flight when the new version comes, and the old one goes at last with them.
  const second = await Promise.all(sessionIds.map(say(api, 'second')));
  await eventually(() => said.filter(({ what }) => what === 'stopped').length === 2, LONG);
  await startWorker(store, said, { version: '2' });
  await over(second.slice(2));
  const third = await Promise.all(sessionIds.map(say(api, 'third')));
  const later = await startApi(store, '2');
  const fourth = await Promise.all(sessionIds.map(say(later, 'fourth')));
  await over(fourth.slice(2));
  await kill(former);
  await over([...second, ...third, ...fourth]);

  for (const [index, sessionId] of sessionIds.entries()) {
    const texts = ['first', 'second', 'third', 'fourth'];
    const turns = await api.turns.list({ sessionId });
    expect(turns.map(({ failures }) => failures)).toEqual([0, index < 2 ? 1 : 0, 0, 0]);
    const path = texts.flatMap((text) => STEPS.map((step) => `${text} ${step}`));
    expect(await api.checkpoints.load('desk', sessionId)).toMatchObject({ version: '2', state: { path } });
    for (const { id } of turns) {
      const done = said.filter(({ turnId, what }) => turnId === id && what === 'did');
      expect(done.map(({ iteration }) => iteration)).toEqual(STEPS);
    }
    expect(said.filter(({ turnId, what }) => turnId === turns[3].id && what === 'did')).toMatchObject(
      STEPS.map(() => ({ version: '2' })),
    );
  }
}

/** Side by side: most of it is waiting for processes to start, and for leases. */
const PROCESSES = STORES.filter(({ name, place }) => place && name !== 'mariadb');
const places = (): StoreOptions[] => PROCESSES.flatMap(({ place }) => (place ? [place()] : []));

it('BOT-05 BOT-30 BOT-31 BOT-32 BOT-33 a worker killed between any two of five steps: the end is as without it, no acknowledged step is repeated', async () => {
  await Promise.all(places().map(killEverywhere));
}, 120_000);

it('BOT-34 a turn that kills its workers fails after the last attempt, and what is behind it runs', async () => {
  await Promise.all(places().map(poison));
}, 120_000);

it('BOT-24 BOT-35 two versions at once: old sessions are migrated, none is stuck, nothing is done twice', async () => {
  const shared = STORES.filter(({ name }) => name === 'postgres' || name === 'redis');
  await Promise.all(shared.flatMap(({ place }) => (place ? [rollOut(place())] : [])));
}, 120_000);
