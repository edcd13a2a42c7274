import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

// `npm run test:matrix`: behaviour above the stores on the stores with a server, and specs that take too long for `npm test`.
const isMatrix = process.env.MATRIX === '1';

/** @type {import('jest').Config} */
export default {
  // The files of a worker share one global object, and the modules of packages and of lib.
  testEnvironment: '<rootDir>/test/support/environment.mjs',
  runtime: '<rootDir>/test/support/runtime.mjs',
  setupFiles: ['<rootDir>/test/support/reset-logging.mjs'],
  roots: ['<rootDir>/test'],
  // Lanes copy specs, or need other packages.
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/test/nest-11/',
    '<rootDir>/test/workflow-transport/',
    ...(isMatrix ? [] : ['\\.matrix\\.spec\\.ts$']),
  ],
  testMatch: isMatrix ? matrixSpecs() : ['**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts', '.lua', '.sql'],
  transform: {
    '^.+\\.ts$': '<rootDir>/test/support/typescript.mjs',
    '^.+\\.(lua|sql)$': '<rootDir>/text-modules.js',
  },
  moduleNameMapper: {
    '^nestjs-agent-sessions$': '<rootDir>/lib/index.ts',
    '^nestjs-agent-sessions/adapter$': '<rootDir>/lib/adapter.ts',
    '^nestjs-agent-sessions/ai-sdk$': '<rootDir>/lib/ai-sdk/index.ts',
    '^nestjs-agent-sessions/bullmq$': '<rootDir>/lib/queue/bullmq/index.ts',
    '^nestjs-agent-sessions/client$': '<rootDir>/lib/client/index.ts',
    '^nestjs-agent-sessions/http$': '<rootDir>/lib/http/index.ts',
    '^nestjs-agent-sessions/redis$': '<rootDir>/lib/store/redis/index.ts',
    '^nestjs-agent-sessions/terminus$': '<rootDir>/lib/terminus/index.ts',
    '^nestjs-agent-sessions/testing$': '<rootDir>/lib/testing/index.ts',
    '^nestjs-agent-sessions/typeorm$': '<rootDir>/lib/store/typeorm/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  // Built by pretest: jest cannot load TypeScript here.
  globalSetup: '<rootDir>/build/test/support/services/global-setup.js',
  globalTeardown: '<rootDir>/build/test/support/services/global-teardown.js',
  // Many tests wait for a server or for time to pass, those of the matrix even more. Before Node 24, more than three files of the matrix on
  // two cores take as long, and are flaky.
  maxWorkers: Math.ceil(
    availableParallelism() * (!isMatrix ? 2 : Number.parseInt(process.versions.node) < 24 ? 1.5 : 2.5),
  ),
  // What test files leave in memory slows down those that follow.
  workerIdleMemoryLimit: '2GB',
  reporters: ['<rootDir>/test/support/reporter.mjs', 'summary'],
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  // What goes wrong says so before: this is for a machine that has much else to do.
  testTimeout: isMatrix ? 180_000 : 60_000,
};

/** The specs that use the stores of behaviour, or ask whether this is the matrix. */
function matrixSpecs() {
  const usesMatrix = /\b(BEHAVIOUR|COMMON|SHARED|LIVE|LASTING|SAMPLED)_STORES\b|\bdescribeStores\b|\bIS_MATRIX\b/;
  const specs = readdirSync('test', { recursive: true }).filter((file) => file.endsWith('.spec.ts'));
  return specs
    .filter((file) => file.endsWith('.matrix.spec.ts') || usesMatrix.test(readFileSync(`test/${file}`, 'utf8')))
    .map((file) => `**/test/${file}`);
}
