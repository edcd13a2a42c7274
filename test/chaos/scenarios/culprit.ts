import { rested, type Scenario, USUAL } from './scenario.js';

const UNTIL_ABORTED_MS = 2_147_483_647;

export const culprit: Scenario = {
  name: 'culprit',
  about: 'one message makes its handler kill the process (SIGKILL) in each attempt, while other turns run beside it',
  stores: ['redis', 'postgres', 'sqlite'],
  // As many as by default.
  stage: () => ({ load: USUAL, culprit: true, maxLost: 5 }),
  play: async (_stage, _random, signal) => void (await rested(UNTIL_ABORTED_MS, signal)),
};
