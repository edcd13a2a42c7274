import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { adapterOf, type StoreOptions } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/iterating-worker.mjs');

/** Of each turn. */
export const STEPS = [0, 1, 2, 3, 4];
export const LONG = { limitMs: 60_000 };

/** What a worker says. */
export interface Said {
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
export async function startWorker(store: StoreOptions, said: Said[], setup: object = {}): Promise<ChildProcess> {
  const child = fork(PROGRAM, [JSON.stringify({ store, version: '1', maxLost: 5, ...setup })], { execArgv: [] });
  children.push(child);
  let ready = false;
  child.on('message', (message: Said) => {
    if (message.what === 'ready') ready = true;
    else said.push(message);
  });
  await eventually(() => ready || child.signalCode !== null, LONG);
  return child;
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** An API that runs nothing itself. */
export async function startApi(store: StoreOptions, version = '1'): Promise<Application> {
  const desk = defineOrchestrator({ name: 'desk', version, route: () => 'work', intents: { work: () => 'not here' } });
  return startApplication({ adapter: adapterOf(store), orchestrators: [desk], role: 'submit' });
}

export async function statusOf({ turns }: Application, turnId: string): Promise<string | undefined> {
  return (await turns.get(turnId))?.status;
}
