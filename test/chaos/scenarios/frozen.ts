import { again, rested, type Scenario, USUAL } from './scenario.js';

export const frozen: Scenario = {
  name: 'frozen',
  about: 'SIGSTOP of a worker until its leases have lapsed, then SIGCONT: it goes on as a zombie',
  stores: ['redis', 'postgres', 'sqlite'],
  stage: () => ({ load: USUAL }),
  play: (stage, random, signal) =>
    again(
      signal,
      () => random.int(50, 500),
      async () => {
        const actor = random.pick(stage.workers);
        stage.freeze(actor);
        await rested(random.chance(0.3) ? random.int(100, 1000) : random.int(2200, 3500));
        stage.thaw(actor);
      },
    ),
};
