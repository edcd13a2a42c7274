import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { type OrchestrationStep } from 'nestjs-agent-sessions';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { IS_MATRIX } from '../support/matrix.js';
import { adapterOf, type StoreOptions, SHARED_STORES } from '../support/stores.js';
import { startDesk, toolsOf } from './turn-desk.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/tool-worker.mjs');

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], onComplete: 'paying' },
  { name: 'paying' },
];

/** @returns the worker and its messages, as they arrive */
async function startWorker(store: StoreOptions): Promise<{ child: ChildProcess; said: string[] }> {
  const child = forkProgram(PROGRAM, { store, steps: STEPS });
  const said: string[] = [];
  child.on('message', (message) => said.push(message as string));
  await eventually(() => said.includes('ready'), { limitMs: 30_000 });
  return { child, said };
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
    // Both attempts used tokens, and the first one had stored a step since (FIX-15).
    cumulativeTokenUsage: { totalTokens: 14 },
  });
  expect(toolsOf(after)).toEqual(['search', 'quote', 'book']);
}

/** The stores run in parallel, because most of the time is spent waiting for process starts and the lease. */
const PROCESSES = SHARED_STORES.filter(({ name }) => name !== 'mariadb');
const NAMES = PROCESSES.map(({ name }) => name).join(', ');

it(`ORC-30 TRN-15 runs the remaining tools after a kill between two tools, and counts each use once (${NAMES})`, async () => {
  expect(PROCESSES).toHaveLength(IS_MATRIX ? 2 : 1);
  await Promise.all(PROCESSES.map(({ place }) => killBetweenTools(place())));
}, 60_000);
