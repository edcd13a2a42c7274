import { killNowAndThen, type Scenario } from './scenario.js';

export const stops: Scenario = {
  name: 'stops',
  about: 'interrupts, rollbacks, replacements, cancels and signals at random, with occasional SIGKILLs',
  stores: ['redis', 'postgres', 'sqlite'],
  environment: () => ({
    load: {
      failure: 0.1,
      wait: 0.4,
      cancel: 0.2,
      whenBusy: ['enqueue', 'enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'],
    },
  }),
  run: (environment, random, signal) => killNowAndThen(environment, environment.workers, random, signal, [1000, 3000]),
};
