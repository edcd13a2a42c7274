import { AsyncLocalStorage } from 'node:async_hooks';
import process from 'node:process';
import { TestEnvironment } from 'jest-environment-node';

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
 * tests write to stdout and stderr, such as the logs of applications, only for a test or hook that fails.
 *
 * This environment resolves `Promise`, `Map` and similar globals at the first lookup, because every statement of
 * every module uses them. This saves about a tenth of the computing time of tests.
 */
export default class SharedEnvironment extends TestEnvironment {
  static #shared = null;

  constructor(...args) {
    if (SharedEnvironment.#shared) return SharedEnvironment.#shared;
    super(...args);
    SharedEnvironment.#shared = this;
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

  handleTestEvent({ name, test }) {
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
