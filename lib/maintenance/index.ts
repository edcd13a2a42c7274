export { type Lease, type LeaseStore } from './lease.store.js';
export { SweepOptions } from './sweep.options.js';
