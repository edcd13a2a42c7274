/** Sets NODE_ENV for the tests of the current block. Logs then hide messages and ids. */
export function inProduction(): void {
  const env = process.env.NODE_ENV;

  beforeEach(() => {
    process.env.NODE_ENV = 'production';
  });

  afterEach(() => {
    process.env.NODE_ENV = env;
  });
}
