import fc from 'fast-check';

/**
 * Random searches of the same length on every machine, instead of as long as a time allows, for a spec that runs the conformance suite.
 * `npm run test:full` searches longer.
 */
export function limitModelRuns(numRuns: number): void {
  fc.configureGlobal({ numRuns: process.env.MODEL === 'full' ? 100 : numRuns });
}
