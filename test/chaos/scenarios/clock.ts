import { killNowAndThen, type Scenario, USUAL } from './scenario.js';
import { clockOff } from '../stage/clock-off.js';

export const clock: Scenario = {
  name: 'clock',
  about: 'the clocks of a worker and of a client are two hours off, while workers are killed',
  stores: ['redis', 'postgres', 'sqlite'],
  stage: (random) => {
    const env = clockOff(random.pick([2, -2]));
    return { load: USUAL, env: (actor) => (actor.endsWith('-1') ? env : {}) };
  },
  play: (stage, random, signal) => killNowAndThen(stage, stage.workers, random, signal, [500, 1500]),
};
