import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { OrchestrationService, type OrchestrationStep, ToolNotAllowedError } from 'nestjs-agent-sessions';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { IS_MATRIX } from '../support/matrix.js';
import { adapterOf, type StoreOptions, SHARED_STORES } from '../support/stores.js';
import { startDesk, toolsOf } from './turn-desk.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/tool-worker.mjs');

/** How a worker runs its turn. */
interface Script {
  readonly steps: readonly OrchestrationStep[];
  readonly tools: readonly string[];
  /** The tool that the first attempt hangs after, or in. */
  readonly hangsAfter?: string;
  readonly hangsIn?: string;
}

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], onComplete: 'paying' },
  { name: 'paying' },
];

const PAY_ONCE: readonly OrchestrationStep[] = [
  { name: 'open', isDefault: true },
  { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
];

/** @returns the worker and its messages, as they arrive */
async function startWorker(store: StoreOptions, script: Script): Promise<{ child: ChildProcess; said: string[] }> {
  const child = forkProgram(PROGRAM, { store, ...script });
  const said: string[] = [];
  child.on('message', (message) => said.push(message as string));
  await eventually(() => said.includes('ready'), { limitMs: 30_000 });
  return { child, said };
}

async function killBetweenTools(store: StoreOptions): Promise<void> {
  const script = { steps: STEPS, tools: ['search', 'quote', 'book'], hangsAfter: 'quote' };
  const { app, session, state, document } = await startDesk(adapterOf(store), { steps: STEPS }, { role: 'submit' });
  const service = app.app.get(OrchestrationService, { strict: false }).of('desk');
  const sessionId = await session();
  const first = await startWorker(store, script);
  const { id } = await app.turns.submit('desk', 'hi', { sessionId });
  await eventually(() => first.said.includes('between'), { limitMs: 30_000 });
  const before = await document(sessionId);
  await kill(first.child);
  // `book` comes next, also for uses outside of the turn (FIX-88).
  for (const tool of ['search', 'quote']) {
    await expect(service.admitTool(sessionId, tool)).rejects.toThrow(ToolNotAllowedError);
  }
  const second = await startWorker(store, script);
  const result = await app.turns.result(id, { timeoutMs: 30_000 });

  const tokens = before?.batches.flatMap(({ entries }) => entries as { type: string }[]);
  expect(tokens?.filter(({ type }) => type === 'tokens')).toMatchObject([{ usage: { totalTokens: 7 } }]);
  expect(result).toMatchObject({ reply: 'Done.' });
  // The result can arrive here before the worker's last message.
  await eventually(() => second.said.includes('book 2'));
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

async function killInTool(store: StoreOptions): Promise<void> {
  const script = { steps: PAY_ONCE, tools: ['pay'], hangsIn: 'pay' };
  const { app, session, state } = await startDesk(adapterOf(store), { steps: PAY_ONCE }, { role: 'submit' });
  const service = app.app.get(OrchestrationService, { strict: false }).of('desk');
  const sessionId = await session();
  const isRefused = (): Promise<void> =>
    expect(service.admitTool(sessionId, 'pay')).rejects.toThrow(ToolNotAllowedError);
  const first = await startWorker(store, script);
  const { id } = await app.turns.submit('desk', 'hi', { sessionId });
  await eventually(() => first.said.includes('pay 1'), { limitMs: 30_000 });
  await isRefused();
  await kill(first.child);
  await isRefused();
  const second = await startWorker(store, script);
  expect(await app.turns.result(id, { timeoutMs: 30_000 })).toMatchObject({ reply: 'Done.' });

  // The effect of a step whose result is not stored is repeated.
  await eventually(() => second.said.includes('pay 2'));
  expect([...first.said, ...second.said].filter((said) => said.startsWith('pay'))).toEqual(['pay 1', 'pay 2']);
  expect((await state(sessionId))?.toolHistory).toMatchObject([{ tool: 'pay', turnId: id, outcome: 'succeeded' }]);
  await isRefused();
}

/** The stores run in parallel, because most of the time is spent waiting for process starts and the lease. */
const PROCESSES = SHARED_STORES.filter(({ name }) => name !== 'mariadb');
const NAMES = PROCESSES.map(({ name }) => name).join(', ');

it(`ORC-30 TRN-15 runs the remaining tools after a kill between two tools, and counts each use once (${NAMES})`, async () => {
  expect(PROCESSES).toHaveLength(IS_MATRIX ? 3 : 1);
  await Promise.all(PROCESSES.map(({ place }) => killBetweenTools(place())));
}, 60_000);

it(`FIX-88 counts a use of a killed worker for uses outside of its turn, and once after the next attempt (${NAMES})`, async () => {
  await Promise.all(PROCESSES.map(({ place }) => killInTool(place())));
}, 60_000);
