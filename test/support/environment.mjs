import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { TestEnvironment } from 'jest-environment-node';

/** The full names of the tests that passed in an earlier step, by file. TESTED is the path of its report: see `.ci/tests`. */
const TESTED = new Map(
  process.env.TESTED
    ? JSON.parse(readFileSync(process.env.TESTED, 'utf8')).testResults.map(({ name, assertionResults }) => [
        fileOf(name),
        new Set(assertionResults.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName)),
      ])
    : [],
);

/** The path of a spec below its project, which may be a copy of the one that was tested. */
function fileOf(testPath) {
  return testPath.replace(/^.*\/test\//, '');
}

/** The symbol under which jest-circus collects event handlers; each test file adds its own. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

/** The storages that this test file enabled. An enabled storage slows down every promise, and Jest disables none. */
const storages = new Set();
for (const name of ['run', 'enterWith']) {
  const original = AsyncLocalStorage.prototype[name];
  AsyncLocalStorage.prototype[name] = function (...args) {
    storages.add(this);
    return original.apply(this, args);
  };
}

/**
 * One global object for all test files of a worker, so that runtime.mjs can keep the modules of Nest and of this package. It shows what
 * tests write to stdout and stderr, such as the logs of applications, only for a test or hook that fails. It skips the tests in TESTED.
 *
 * This environment resolves `Promise`, `Map` and similar globals at the first lookup, because every statement of
 * every module uses them. This saves about a tenth of the computing time of tests.
 */
export default class SharedEnvironment extends TestEnvironment {
  static #shared = null;

  constructor(...args) {
    const [, { testPath }] = args;
    const shared = SharedEnvironment.#shared;
    if (shared) {
      shared.testPath = testPath;
      return shared;
    }
    super(...args);
    SharedEnvironment.#shared = this;
    this.global.hostProcess = process;
    this.testPath = testPath;
    this.output = [];
    for (const name of ['stdout', 'stderr']) {
      const stream = Object.create(process[name], { write: { value: this.keeps(name), writable: true } });
      Object.defineProperty(this.global.process, name, { value: stream, configurable: true, writable: true });
    }
    // The object behind the context's global object. Lookups come here first, then to its own built-in properties.
    const { global: first } = this._globalProxy;
    for (const name of Object.getOwnPropertyNames(this.global)) {
      if (name === 'globalThis' || Object.hasOwn(first, name)) continue;
      Object.defineProperty(first, name, Object.getOwnPropertyDescriptor(this.global, name));
    }
  }

  async teardown() {
    this.output = [];
    this.fakeTimersModern.useRealTimers();
    delete this.global[EVENT_HANDLERS];
    for (const storage of storages) storage.disable();
    storages.clear();
  }

  handleTestEvent({ name, test }, { rootDescribeBlock }) {
    if (name === 'run_start') skip(rootDescribeBlock, TESTED.get(fileOf(this.testPath)) ?? new Set());
    if (name === 'test_done') this.release(test.errors.length > 0);
    if (name === 'hook_failure' || name === 'error') this.release(true);
  }

  keeps(name) {
    return (chunk, encoding, done) => {
      this.output.push([name, chunk]);
      const callback = typeof encoding === 'function' ? encoding : done;
      if (callback) process.nextTick(callback);
      return true;
    };
  }

  release(isFailed) {
    if (isFailed) for (const [name, chunk] of this.output) process[name].write(chunk);
    this.output = [];
  }
}

/** Skips the tests with these full names, and with them the hooks of blocks that have no other tests. */
function skip(block, names, path = []) {
  for (const child of block.children) {
    const name = [...path, child.name];
    if (child.type === 'describeBlock') skip(child, names, name);
    else if (names.has(name.join(' '))) child.mode = 'skip';
  }
}
