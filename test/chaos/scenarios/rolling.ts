import { again, type Scenario, USUAL } from './scenario.js';

export const rolling: Scenario = {
  name: 'rolling',
  about: 'one process after the other is stopped (SIGTERM) and restarted under load',
  stores: ['redis', 'postgres', 'sqlite'],
  environment: () => ({ load: USUAL }),
  run: async (environment, random, signal) => {
    let turn = 0;
    await again(
      signal,
      () => random.int(0, 300),
      async () => {
        const actor = environment.actors[turn % environment.actors.length];
        turn += 1;
        environment.fault('terminate', actor.process);
        await actor.stop();
        await actor.start();
      },
    );
  },
};
