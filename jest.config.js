import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  testEnvironment: '<rootDir>/test/support/environment.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts', '.lua', '.sql'],
  transform: {
    '^.+\\.ts$': ['ts-jest', { useESM: true, diagnostics: false }],
    '^.+\\.(lua|sql)$': '<rootDir>/text-modules.js',
  },
  moduleNameMapper: {
    '^nestjs-agent-sessions$': '<rootDir>/lib/index.ts',
    '^nestjs-agent-sessions/bullmq$': '<rootDir>/lib/queue/bullmq/index.ts',
    '^nestjs-agent-sessions/client$': '<rootDir>/lib/client/index.ts',
    '^nestjs-agent-sessions/redis$': '<rootDir>/lib/store/redis/index.ts',
    '^nestjs-agent-sessions/terminus$': '<rootDir>/lib/terminus/index.ts',
    '^nestjs-agent-sessions/testing$': '<rootDir>/lib/testing/index.ts',
    '^nestjs-agent-sessions/typeorm$': '<rootDir>/lib/store/typeorm/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  // Built by pretest: jest cannot load TypeScript here.
  globalSetup: '<rootDir>/build/test/support/services/global-setup.js',
  globalTeardown: '<rootDir>/build/test/support/services/global-teardown.js',
  // Two cores run three files at a time: many tests wait for a server or for time to pass.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  // What test files leave in memory slows down those that follow.
  workerIdleMemoryLimit: '1GB',
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  // What goes wrong says so before: this is for a machine that has much else to do.
  testTimeout: 60_000,
};
