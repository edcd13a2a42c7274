import { type Benchmark } from './benchmark.js';
import { growth } from './growth.js';
import { prf06 } from './prf-06.js';
import { prf07 } from './prf-07.js';
import { prf08 } from './prf-08.js';
import { prf09 } from './prf-09.js';

/** In the order in which they run on a store. */
export const BENCHMARKS: readonly Benchmark[] = [prf06, prf07, prf09, prf08, growth];
