import { type Lease, type LeaseStore } from '../../ledger/lease.store.js';
import { type LeaseRow } from '../core/rows.js';
import { type PostgresDatabase } from './postgres-database.js';
import { type SqlRow, toRow } from './postgres-rows.js';

/** Stores leases in PostgreSQL. */
export class PostgresLeases implements LeaseStore {
  constructor(private readonly db: PostgresDatabase) {}

  async acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null> {
    const stored = await this.db.call<SqlRow | null>('acquire_lease_v1', { name, holder, ttl_ms: ttlMs });
    return stored && { name, holder, fence: toRow<LeaseRow>(stored).fence };
  }

  renew({ name, holder, fence }: Lease, ttlMs: number): Promise<boolean> {
    return this.db.call('renew_lease_v1', { name, holder, fence, ttl_ms: ttlMs });
  }

  async release(lease: Lease): Promise<void> {
    await this.renew(lease, 0);
  }
}
