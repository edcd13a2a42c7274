import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };

/** The major version of Nest in the tests: 12, and 11 in `npm run test:nest-11`. */
export const NEST_MAJOR = parseInt(version, 10);
