import { again, rested, type Scenario, USUAL } from './scenario.js';

export const frozen: Scenario = {
  name: 'frozen',
  about: 'SIGSTOP of a worker until its leases have lapsed, then SIGCONT: it continues without its leases',
  stores: ['redis', 'postgres', 'sqlite'],
  environment: () => ({ load: USUAL }),
  run: (environment, random, signal) =>
    again(
      signal,
      () => random.int(50, 500),
      async () => {
        const actor = random.pick(environment.workers);
        environment.freeze(actor);
        await rested(random.chance(0.3) ? random.int(100, 1000) : random.int(2200, 3500));
        environment.thaw(actor);
      },
    ),
};
