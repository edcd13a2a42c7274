import { again, type Scenario, USUAL } from './scenario.js';

export const rolling: Scenario = {
  name: 'rolling',
  about: 'one process after the other is stopped (SIGTERM) and started again under load',
  stores: ['redis', 'postgres', 'sqlite'],
  stage: () => ({ load: USUAL }),
  play: async (stage, random, signal) => {
    let turn = 0;
    await again(
      signal,
      () => random.int(0, 300),
      async () => {
        const actor = stage.actors[turn % stage.actors.length];
        turn += 1;
        stage.fault('terminate', actor.process);
        await actor.stop();
        await actor.start();
      },
    );
  },
};
