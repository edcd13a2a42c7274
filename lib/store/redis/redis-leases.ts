import { type Lease, type LeaseStore } from '../../ledger/lease.store.js';
import { type RedisDatabase } from './redis-database.js';
import { SCRIPTS } from './redis-scripts.js';

/** Stores leases in Redis. */
export class RedisLeases implements LeaseStore {
  constructor(private readonly db: RedisDatabase) {}

  async acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null> {
    const [fence] = await this.db.run<[number | null]>(SCRIPTS.acquireLease, name, holder, ttlMs);
    return fence === null ? null : { name, holder, fence };
  }

  async renew({ name, holder, fence }: Lease, ttlMs: number): Promise<boolean> {
    const [own] = await this.db.run<[number]>(SCRIPTS.renewLease, name, holder, fence, ttlMs);
    return own === 1;
  }

  async release(lease: Lease): Promise<void> {
    await this.renew(lease, 0);
  }
}
