import config from '../../jest.config.js';

/** The tests of what Nest and this package do together, on Nest 11: `npm run test:nest-11`. */
export default {
  ...config,
  rootDir: '../..',
  roots: ['http', 'transport', 'module', 'testing', 'e2e'].map((folder) => `<rootDir>/test/${folder}`),
  // Those run the packages of the root.
  testPathIgnorePatterns: [
    '/node_modules/',
    'optional-parts',
    'packed-package',
    'bundled-application',
    'declarations.spec',
    'state-processes',
    '-page\\.',
  ],
  moduleNameMapper: { '^(@nestjs/.*)$': '<rootDir>/test/nest-11/node_modules/$1', ...config.moduleNameMapper },
  globalSetup: '<rootDir>/test/nest-11/global-setup.mjs',
};
