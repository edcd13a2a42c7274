import { setTimeout as delay } from 'node:timers/promises';
import { type Random } from '../random.js';
import { type ActorProcess } from '../stage/actor-process.js';
import { type Stage, type StageOptions } from '../stage/stage.js';
import { type StoreName } from '../stage/place.js';

/** Something that happens to a system under load. */
export interface Scenario {
  readonly name: string;
  /** A line for the table of scenarios. */
  readonly about: string;
  readonly stores: readonly StoreName[];
  readonly stage: (random: Random) => StageOptions;
  /** Goes on until the signal is aborted, and leaves everybody alive and everything mended. */
  readonly play: (stage: Stage, random: Random, signal: AbortSignal) => Promise<void>;
}

/** One message in ten fails at least once, some wait, few are cancelled. */
export const USUAL: StageOptions['load'] = { failure: 0.1, wait: 0.05, cancel: 0.02, whenBusy: ['enqueue'] };

/** Does something again and again, with pauses in between. */
export async function again(signal: AbortSignal, pause: () => number, work: () => Promise<void>): Promise<void> {
  while (await rested(pause(), signal)) await work();
}

/** @returns false when the signal was aborted meanwhile */
export async function rested(ms: number, signal?: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
  return !signal?.aborted;
}

/** Kills one of these now and then, and starts it again. */
export function killNowAndThen(
  stage: Stage,
  actors: readonly ActorProcess[],
  random: Random,
  signal: AbortSignal,
  [shortest, longest]: readonly [number, number],
): Promise<void> {
  return again(
    signal,
    () => random.int(shortest, longest),
    async () => {
      const actor = random.pick(actors);
      await stage.kill(actor);
      await rested(random.int(0, 300));
      await actor.start();
    },
  );
}
