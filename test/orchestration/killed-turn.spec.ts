import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type OrchestrationStep } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { adapterOf, type StoreOptions, STORES } from '../support/stores.js';
import { startDesk, toolsOf } from './turn-desk.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/tool-worker.mjs');

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], onComplete: 'paying' },
  { name: 'paying' },
];

const workers: ChildProcess[] = [];

afterAll(async () => {
  await Promise.all(workers.map(kill));
});

/** @returns what it says, as it says it */
async function startWorker(store: StoreOptions): Promise<{ child: ChildProcess; said: string[] }> {
  const child = fork(PROGRAM, [JSON.stringify({ store, steps: STEPS })], { execArgv: [] });
  workers.push(child);
  const said: string[] = [];
  child.on('message', (message) => said.push(message as string));
  await eventually(() => said.includes('ready'), { limitMs: 30_000 });
  return { child, said };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

async function killBetweenTools(store: StoreOptions): Promise<void> {
  const { app, session, state, document } = await startDesk(adapterOf(store), { steps: STEPS }, { role: 'submit' });
  const sessionId = await session();
  const first = await startWorker(store);
  const { id } = await app.turns.submit('desk', 'hi', { sessionId });
  await eventually(() => first.said.includes('between'), { limitMs: 30_000 });
  const before = await document(sessionId);
  await kill(first.child);
  const second = await startWorker(store);
  const result = await app.turns.result(id, { timeoutMs: 30_000 });

  expect(before?.batches).toMatchObject([{ entries: [{ type: 'tokens', usage: { totalTokens: 7 } }] }]);
  expect(result).toMatchObject({ reply: 'Booked.' });
  expect([...first.said, ...second.said].filter((said) => / \d$/.test(said))).toEqual([
    'search 1',
    'quote 1',
    'book 2',
  ]);
  const after = await state(sessionId);
  expect(after).toMatchObject({
    activeStep: 'paying',
    progress: { booking: 0 },
    // Both attempts asked, and the first one had stored a step since (FIX-15).
    cumulativeTokenUsage: { totalTokens: 14 },
  });
  expect(toolsOf(after)).toEqual(['search', 'quote', 'book']);
}

/** Side by side: most of it is waiting for processes to start, and for the lease. */
it('ORC-30 TRN-15 a worker killed between two tools: the next one runs the rest, and each use counts once', async () => {
  const places = STORES.filter(({ name }) => name !== 'mariadb').flatMap(({ place }) => (place ? [place()] : []));
  expect(places).toHaveLength(3);
  await Promise.all(places.map(killBetweenTools));
}, 60_000);
