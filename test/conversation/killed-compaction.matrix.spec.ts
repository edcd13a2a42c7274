import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { adapterOf, type StoreOptions, SHARED_STORES } from '../support/stores.js';
import { headOf } from './compactors.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/compacting-worker.mjs');

async function startWorker(store: StoreOptions, slow: boolean): Promise<{ child: ChildProcess; said: string[] }> {
  const child = forkProgram(PROGRAM, { store, slow });
  const said: string[] = [];
  child.on('message', (message) => said.push(message as string));
  await eventually(() => said.includes('ready'), { limitMs: 30_000 });
  return { child, said };
}

const NAMES = SHARED_STORES.map(({ name }) => name).join(', ');

it(`BOT-41 BOT-44 keeps the conversation when a process is killed during compaction, and compacts it later in another process (${NAMES})`, async () => {
  // Run in parallel: most of the time is spent waiting for the lease of the dead process to expire.
  await Promise.all(SHARED_STORES.map(({ place }) => killWhileCompacting(place())));
}, 60_000);

async function killWhileCompacting(store: StoreOptions): Promise<void> {
  // The worker runs this orchestrator; this process only accepts turns.
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'not here' } });
  const { adapter, handle, session } = await startApplication({
    adapter: adapterOf(store),
    orchestrators: [desk],
    role: 'submit',
  });
  const sessionId = await session();
  const say = (text: string) => handle(desk).execute(text, { sessionId, timeoutMs: 15_000 });
  const first = await startWorker(store, true);
  for (const text of ['1', '2', '3']) await say(text);
  await eventually(() => first.said.includes('summarizing'));
  await kill(first.child);

  expect(await headOf(adapter, sessionId)).toMatchObject({ number: 0, summary: null });
  const second = await startWorker(store, false);
  const { data } = await say('4');
  expect(data).toEqual(['1', 're 1', '2', 're 2', '3', 're 3']);
  // The dead process holds the session until its lease expires.
  let turns = 4;
  await eventually(
    async () => {
      // A turn during the compaction would trigger another one.
      if (!second.said.includes('summarizing')) await say(`${(turns += 1)}`);
      return second.said.includes('applied');
    },
    { limitMs: 30_000 },
  );
  expect(second.said.filter((said) => said === 'summarizing')).toHaveLength(1);
  const { summary } = await eventually(async () => {
    const head = await headOf(adapter, sessionId);
    return head.lease === null ? head : null;
  });
  const last = (await say('and')).data as string[];
  const everything = Array.from({ length: turns }, (_, index) => `${index + 1} re ${index + 1}`);
  expect(last[0]).toBe(summary?.content);
  expect(last.join(' ')).toBe(everything.join(' '));
  expect(last.length).toBeLessThan(2 * turns);
}
