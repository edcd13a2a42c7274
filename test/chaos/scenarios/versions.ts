import { killNowAndThen, type Scenario, USUAL } from './scenario.js';

export const versions: Scenario = {
  name: 'versions',
  about: 'two versions of workers and clients side by side, and a SIGKILL now and then',
  stores: ['redis', 'postgres'],
  // Two workers are new: one of them is always there for what the old one does not know.
  stage: () => ({ load: USUAL, version: (actor) => (actor.endsWith('-1') ? '1.0.0' : '1.1.0') }),
  play: (stage, random, signal) => killNowAndThen(stage, stage.workers, random, signal, [1000, 3000]),
};
