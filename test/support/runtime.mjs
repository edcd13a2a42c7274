import { fileURLToPath } from 'node:url';
import Runtime from 'jest-runtime';

/**
 * Modules that each test file evaluates again: the tests, their helpers, and the conformance suite, which registers tests.
 * Other modules remain loaded, so that only the first file of a worker loads Nest, TypeORM and this package.
 */
const PER_FILE = /^[\\/](test|sample|lib[\\/]testing)[\\/](?!.*[\\/]node_modules[\\/])/;
const PER_FILE_PACKAGES = /[\\/]node_modules[\\/](@jest|jest|expect|fast-check)\b|^@jest\b/;

/** The runtime of all test files of a worker, for environment.mjs, which keeps their global object. */
export default class SharedRuntime extends Runtime {
  static #shared = null;

  constructor(...args) {
    if (SharedRuntime.#shared) {
      SharedRuntime.#shared.begin(args[6]);
      return SharedRuntime.#shared;
    }
    super(...args);
    SharedRuntime.#shared = this;
  }

  begin(testPath) {
    this._testPath = testPath;
    this.esmLoader.testPath = testPath;
    this.executor.testPath = testPath;
    this.testState.leaveTestCode();
  }

  teardown() {
    this.restoreAllMocks();
    const { registries } = this;
    const cjs = this.kept(registries.moduleRegistry);
    const esm = this.kept(registries.esModuleRegistry);
    registries.clear();
    for (const [key, module] of cjs) registries.moduleRegistry.set(key, module);
    for (const [key, module] of esm) registries.esModuleRegistry.set(key, module);
    this.testMainModule.reset();
    this.mockState.clear();
    this.jestGlobals.clearJestObjectCache();
    this.testState.teardown();
  }

  kept(registry) {
    return [...registry].filter(([key]) => {
      const path = (key.startsWith('file:') ? fileURLToPath(key) : key).replace(this._config.rootDir, '');
      return !PER_FILE.test(path) && !PER_FILE_PACKAGES.test(path);
    });
  }
}
