import { killNowAndThen, type Scenario, USUAL } from './scenario.js';

export const kills: Scenario = {
  name: 'kills',
  about: 'SIGKILL of any process at any instant, while one turn in ten fails',
  stores: ['redis', 'postgres', 'sqlite'],
  stage: () => ({ load: USUAL }),
  play: (stage, random, signal) => killNowAndThen(stage, stage.actors, random, signal, [100, 900]),
};
