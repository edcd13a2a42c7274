import { setTimeout as delay } from 'node:timers/promises';
import { type Random } from '../random.js';
import { type ActorProcess } from '../environment/actor-process.js';
import { type Environment, type EnvironmentOptions } from '../environment/environment.js';
import { type StoreName } from '../environment/place.js';

/** Faults that happen to a system under load. */
export interface Scenario {
  readonly name: string;
  /** A description for the table of scenarios. */
  readonly about: string;
  readonly stores: readonly StoreName[];
  readonly environment: (random: Random) => EnvironmentOptions;
  /** Runs until the signal is aborted. Leaves all actors alive and all faults repaired. */
  readonly run: (environment: Environment, random: Random, signal: AbortSignal) => Promise<void>;
}

/** The usual load: one message in ten fails at least once, some wait, few are cancelled. */
export const USUAL: EnvironmentOptions['load'] = { failure: 0.1, wait: 0.05, cancel: 0.02, whenBusy: ['enqueue'] };

/** Repeats work with pauses in between. */
export async function again(signal: AbortSignal, pause: () => number, work: () => Promise<void>): Promise<void> {
  while (await rested(pause(), signal)) await work();
}

/** @returns false if the signal was aborted during the pause */
export async function rested(ms: number, signal?: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
  return !signal?.aborted;
}

/** Repeatedly kills one of the actors at random, and restarts it. */
export function killNowAndThen(
  environment: Environment,
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
      await environment.kill(actor);
      await rested(random.int(0, 300));
      await actor.start();
    },
  );
}
