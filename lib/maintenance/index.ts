export { type Lease, type LeaseStore } from './lease.store.js';
