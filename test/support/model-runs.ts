import fc from 'fast-check';

/**
 * Sets a fixed number of random runs instead of a time limit, for specs that run the conformance suite.
 * `npm run test:full` searches longer.
 */
export function limitModelRuns(numRuns: number): void {
  fc.configureGlobal({ numRuns: process.env.MODEL === 'full' ? 100 : numRuns });
}
