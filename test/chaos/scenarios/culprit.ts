import { rested, type Scenario, USUAL } from './scenario.js';

const UNTIL_ABORTED_MS = 2_147_483_647;

export const culprit: Scenario = {
  name: 'culprit',
  about: 'one message makes its handler kill the process (SIGKILL) in each attempt, while other turns run beside it',
  stores: ['redis', 'postgres', 'sqlite'],
  // The default.
  environment: () => ({ load: USUAL, culprit: true, maxLost: 5 }),
  run: async (_environment, _random, signal) => void (await rested(UNTIL_ABORTED_MS, signal)),
};
