import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { defineOrchestrator } from 'nestjs-agent-sessions';
import { forkProgram } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { type Application, startApplication } from '../support/running-application.js';
import { adapterOf, type StoreOptions } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/iterating-worker.mjs');

/** The iterations of each turn. */
export const STEPS = [0, 1, 2, 3, 4];
export const LONG = { limitMs: 60_000 };

/** A report of a worker. */
export interface Said {
  readonly what: 'ready' | 'routed' | 'did' | 'stopped';
  readonly turnId: string;
  readonly attempt: number;
  readonly version: string;
  readonly iteration?: number;
  readonly key?: string;
}

/** @param said collects the worker's reports */
export async function startWorker(store: StoreOptions, said: Said[], setup: object = {}): Promise<ChildProcess> {
  const child = forkProgram(PROGRAM, { store, version: '1', maxLost: 5, ...setup });
  let ready = false;
  child.on('message', (message: Said) => {
    if (message.what === 'ready') ready = true;
    else said.push(message);
  });
  await eventually(() => ready || child.signalCode !== null, LONG);
  return child;
}

/** An API that runs nothing itself. */
export async function startApi(store: StoreOptions, version = '1'): Promise<Application> {
  const desk = defineOrchestrator({ name: 'desk', version, route: () => 'work', intents: { work: () => 'not here' } });
  return startApplication({ adapter: adapterOf(store), orchestrators: [desk], role: 'submit' });
}

export async function statusOf({ turns }: Application, turnId: string): Promise<string | undefined> {
  return (await turns.get(turnId))?.status;
}
