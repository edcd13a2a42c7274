import config from '../../jest.config.js';

/** The tests of `WorkflowChatTransport`: `npm run test:workflow-transport`. They need no server of a store. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['<rootDir>/test/workflow-transport'],
  testPathIgnorePatterns: ['/node_modules/'],
  globalSetup: undefined,
  globalTeardown: undefined,
};
