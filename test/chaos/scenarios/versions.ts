import { killNowAndThen, type Scenario, USUAL } from './scenario.js';

export const versions: Scenario = {
  name: 'versions',
  about: 'two versions of workers and clients run together, with occasional SIGKILLs',
  stores: ['redis', 'postgres'],
  // Two workers are new, so that one is always available for work that the old one does not know.
  environment: () => ({ load: USUAL, version: (actor) => (actor.endsWith('-1') ? '1.0.0' : '1.1.0') }),
  run: (environment, random, signal) => killNowAndThen(environment, environment.workers, random, signal, [1000, 3000]),
};
