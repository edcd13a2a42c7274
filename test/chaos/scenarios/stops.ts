import { killNowAndThen, type Scenario } from './scenario.js';

export const stops: Scenario = {
  name: 'stops',
  about: 'interrupts, rollbacks, replacements, cancels and signals at random, and a SIGKILL now and then',
  stores: ['redis', 'postgres', 'sqlite'],
  stage: () => ({
    load: {
      failure: 0.1,
      wait: 0.4,
      cancel: 0.2,
      whenBusy: ['enqueue', 'enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'],
    },
  }),
  play: (stage, random, signal) => killNowAndThen(stage, stage.workers, random, signal, [1000, 3000]),
};
