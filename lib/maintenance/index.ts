export { type Lease, type LeaseStore } from '../ledger/lease.store.js';
export { SweepOptions } from './sweep.options.js';
