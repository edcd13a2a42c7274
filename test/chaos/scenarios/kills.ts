import { killNowAndThen, type Scenario, USUAL } from './scenario.js';

export const kills: Scenario = {
  name: 'kills',
  about: 'SIGKILL of any process at any time, while one turn in ten fails',
  stores: ['redis', 'postgres', 'sqlite'],
  environment: () => ({ load: USUAL }),
  run: (environment, random, signal) => killNowAndThen(environment, environment.actors, random, signal, [100, 900]),
};
