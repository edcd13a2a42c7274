import fc from 'fast-check';

/**
 * Imported by specs that run the conformance suite over a server: random searches of the same length on every machine, instead of
 * as long as a time allows. `npm run test:full` searches longer.
 */
fc.configureGlobal({ numRuns: process.env.MODEL === 'full' ? 100 : 10 });
