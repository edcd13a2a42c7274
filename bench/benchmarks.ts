import { ais01 } from './ais-01.js';
import { type Benchmark } from './benchmark.js';
import { growthOfLanes } from './growth-lanes.js';
import { growthOfReaders } from './growth-readers.js';
import { growthOfWorkers } from './growth-workers.js';
import { growth } from './growth.js';
import { peerAdk } from './peer-adk.js';
import { peerDbos } from './peer-dbos.js';
import { prf01 } from './prf-01.js';
import { prf02 } from './prf-02.js';
import { prf03 } from './prf-03.js';
import { prf04 } from './prf-04.js';
import { prf05 } from './prf-05.js';
import { prf06 } from './prf-06.js';
import { prf07 } from './prf-07.js';
import { prf08 } from './prf-08.js';
import { prf09 } from './prf-09.js';
import { prf10 } from './prf-10.js';
import { prf11 } from './prf-11.js';
import { prf12 } from './prf-12.js';
import { prf13 } from './prf-13.js';

/** In the order in which they run on a store. */
export const BENCHMARKS: readonly Benchmark[] = [
  prf01,
  prf02,
  peerDbos,
  prf03,
  prf04,
  prf05,
  prf10,
  prf11,
  prf12,
  prf13,
  ais01,
  prf06,
  peerAdk,
  prf07,
  prf09,
  prf08,
  growth,
  growthOfLanes,
  growthOfReaders,
  growthOfWorkers,
];
