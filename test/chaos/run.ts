import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkHistory, type Verdict } from './checker/check-history.js';
import { readHistory } from './history/read-history.js';
import { Random } from './random.js';
import { readSessions } from './read-sessions.js';
import { rested, type Scenario } from './scenarios/scenario.js';
import { type StoreName } from './environment/place.js';
import { LEASE_MS, Environment } from './environment/environment.js';

/** Milliseconds that a system may need to finish its work after the last fault. */
const REST_LIMIT_MS = 40_000;
const LOOK_EVERY_MS = 100;

export interface Run {
  readonly scenario: Scenario;
  readonly store: StoreName;
  readonly seed: number;
  /** The duration of load and faults. */
  readonly seconds: number;
}

export interface RunResult extends Run {
  readonly verdict: Verdict;
  /** Unexpected failures of actors, or that the run had nothing to check. */
  readonly failures: readonly Error[];
  /** The folder of the histories, if the run has failed. */
  readonly folder?: string;
}

/**
 * Runs one scenario on one store: load and faults, then rest, then the verdict.
 * @param stop ends the run immediately when aborted, removes its data, and throws the reason
 */
export async function runChaos(run: Run, stop: AbortSignal): Promise<RunResult> {
  stop.throwIfAborted();
  const folder = mkdtempSync(join(tmpdir(), `chaos-${run.scenario.name}-${run.store}-`));
  const result = await runIn(folder, run, stop).catch((error: unknown) => {
    if (!stop.aborted) throw new Error(`The run failed. Its files are in ${folder}.`, { cause: error });
    rmSync(folder, { recursive: true });
    throw error;
  });
  if (result.verdict.violations.length > 0 || result.failures.length > 0) return { ...result, folder };
  rmSync(folder, { recursive: true });
  return result;
}

async function runIn(folder: string, run: Run, stop: AbortSignal): Promise<RunResult> {
  const { scenario, store, seed, seconds } = run;
  const random = new Random(seed);
  const environment = await Environment.open(store, folder, scenario.environment(random.fork()), random.fork(), stop);
  try {
    const over = AbortSignal.timeout(seconds * 1000);
    await scenario.run(environment, random.fork(), AbortSignal.any([over, stop]));
    stop.throwIfAborted();
    const leftovers = await comeToRest(environment, stop);
    await environment.stop();
    const contents = { sessions: await readSessions(environment.place, environment.sessions), leftovers };
    writeFileSync(join(folder, 'contents.json'), JSON.stringify(contents));
    // On a file, leases are free as soon as the worker's process has ended.
    const leaseMs = store === 'sqlite' ? null : LEASE_MS;
    const verdict = checkHistory(readHistory(folder), contents, { leaseMs, maxLost: environment.maxLost });
    return { ...run, verdict, failures: [...environment.failures, ...nothingProved(environment, verdict)] };
  } finally {
    await environment.close();
  }
}

function nothingProved({ hasCulprit }: Environment, { attempts, crashes }: Verdict): Error[] {
  if (attempts === 0) return [new Error('No handler started, so the run proved nothing.')];
  if (hasCulprit && crashes === 0) return [new Error('No handler killed its process, so the run proved nothing.')];
  return [];
}

/**
 * Waits until no client submits, no lane has work and no notification is pending, at most for REST_LIMIT_MS. The verdict
 * reports lanes that are stuck.
 * @returns the remaining jobs
 */
async function comeToRest(environment: Environment, stop: AbortSignal): Promise<readonly string[]> {
  const store = environment.place.openStore();
  await store.init?.();
  try {
    const from = performance.now();
    for (;;) {
      const giveUp = Math.max(from, environment.disturbedAt) + REST_LIMIT_MS;
      stop.throwIfAborted();
      const idle = environment.silence() && (await store.turns.lanes({ limit: 1 })).lanes.length === 0;
      const leftovers = await environment.place.leftovers();
      if ((idle && leftovers.length === 0) || performance.now() > giveUp || environment.failures.length > 0)
        return leftovers;
      await rested(LOOK_EVERY_MS);
    }
  } finally {
    await store.close?.();
  }
}
