import { killNowAndThen, type Scenario, USUAL } from './scenario.js';
import { clockOff } from '../environment/clock-off.js';

export const clock: Scenario = {
  name: 'clock',
  about: 'the clocks of a worker and of a client are two hours wrong, while workers are killed',
  stores: ['redis', 'postgres', 'sqlite'],
  environment: (random) => {
    const env = clockOff(random.pick([2, -2]));
    return { load: USUAL, env: (actor) => (actor.endsWith('-1') ? env : {}) };
  },
  run: (environment, random, signal) => killNowAndThen(environment, environment.workers, random, signal, [500, 1500]),
};
