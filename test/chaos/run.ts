import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkHistory, type Verdict } from './checker/check-history.js';
import { readHistory } from './history/read-history.js';
import { Random } from './random.js';
import { readSessions } from './read-sessions.js';
import { rested, type Scenario } from './scenarios/scenario.js';
import { type StoreName } from './stage/place.js';
import { LEASE_MS, Stage } from './stage/stage.js';

/** How long a system may take to come to rest when nothing is done to it any more. */
const REST_LIMIT_MS = 40_000;
const LOOK_EVERY_MS = 100;

export interface Run {
  readonly scenario: Scenario;
  readonly store: StoreName;
  readonly seed: number;
  /** Of load and faults. */
  readonly seconds: number;
}

export interface RunResult extends Run {
  readonly verdict: Verdict;
  /** What actors did without having been asked for, or that there was nothing to judge. */
  readonly failures: readonly Error[];
  /** Where the histories are, when something is wrong with them. */
  readonly folder?: string;
}

/**
 * One scenario on one store: load and faults, then rest, then the verdict.
 * @param stop when aborted, everything ends at once and leaves nothing behind, and its reason is thrown
 */
export async function runChaos(run: Run, stop: AbortSignal): Promise<RunResult> {
  stop.throwIfAborted();
  const folder = mkdtempSync(join(tmpdir(), `chaos-${run.scenario.name}-${run.store}-`));
  const result = await playIn(folder, run, stop).catch((error: unknown) => {
    if (!stop.aborted) throw new Error(`The run broke off; what it wrote is in ${folder}.`, { cause: error });
    rmSync(folder, { recursive: true });
    throw error;
  });
  if (result.verdict.violations.length > 0 || result.failures.length > 0) return { ...result, folder };
  rmSync(folder, { recursive: true });
  return result;
}

async function playIn(folder: string, run: Run, stop: AbortSignal): Promise<RunResult> {
  const { scenario, store, seed, seconds } = run;
  const random = new Random(seed);
  const stage = await Stage.open(store, folder, scenario.stage(random.fork()), random.fork(), stop);
  try {
    const over = AbortSignal.timeout(seconds * 1000);
    await scenario.play(stage, random.fork(), AbortSignal.any([over, stop]));
    stop.throwIfAborted();
    const leftovers = await comeToRest(stage, stop);
    await stage.stop();
    const contents = { sessions: await readSessions(stage.place, stage.sessions), leftovers };
    writeFileSync(join(folder, 'contents.json'), JSON.stringify(contents));
    // What a worker on a file held is free as soon as its process is gone.
    const leaseMs = store === 'sqlite' ? null : LEASE_MS;
    const verdict = checkHistory(readHistory(folder), contents, { leaseMs, maxLost: stage.maxLost });
    return { ...run, verdict, failures: [...stage.failures, ...nothingProved(stage, verdict)] };
  } finally {
    await stage.close();
  }
}

function nothingProved({ hasCulprit }: Stage, { attempts, crashes }: Verdict): Error[] {
  if (attempts === 0) return [new Error('No handler began: nothing was proved.')];
  if (hasCulprit && crashes === 0) return [new Error('No handler killed its process: nothing was proved.')];
  return [];
}

/**
 * Until nobody submits anything, no lane has work and every ring is heard, or for as long as is bearable: the verdict tells
 * what stands still.
 * @returns what is left over then
 */
async function comeToRest(stage: Stage, stop: AbortSignal): Promise<readonly string[]> {
  const store = stage.place.openStore();
  await store.init?.();
  try {
    const from = performance.now();
    for (;;) {
      const giveUp = Math.max(from, stage.disturbedAt) + REST_LIMIT_MS;
      stop.throwIfAborted();
      const idle = stage.silence() && (await store.turns.lanes({ limit: 1 })).lanes.length === 0;
      const leftovers = await stage.place.leftovers();
      if ((idle && leftovers.length === 0) || performance.now() > giveUp || stage.failures.length > 0) return leftovers;
      await rested(LOOK_EVERY_MS);
    }
  } finally {
    await store.close?.();
  }
}
