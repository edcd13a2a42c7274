import { type Lease, type LeaseStore } from '../../ledger/lease.store.js';
import { type CoreDatabase, type Transaction } from './tables.js';

/** Implements leases on the tables of a store. */
export class CoreLeases implements LeaseStore {
  constructor(private readonly db: CoreDatabase) {}

  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null> {
    return this.db.write((tx) => {
      const current = tx.leases.get(name);
      if (current && current.holder !== holder && current.expiresAt > tx.now) return null;
      const fence = current ? current.fence + (current.holder === holder ? 0 : 1) : 1;
      const row = { name, holder, fence, expiresAt: tx.now + ttlMs };
      if (current) tx.leases.update(name, row);
      else tx.leases.insert(row);
      return { name, holder, fence };
    });
  }

  renew(lease: Lease, ttlMs: number): Promise<boolean> {
    return this.db.write((tx) => {
      const own = isOwn(tx, lease);
      if (own) tx.leases.update(lease.name, { expiresAt: tx.now + ttlMs });
      return own;
    });
  }

  release(lease: Lease): Promise<void> {
    return this.db.write((tx) => {
      // Keeps the row, so that the fence continues to increase.
      if (isOwn(tx, lease)) tx.leases.update(lease.name, { expiresAt: tx.now });
    });
  }
}

function isOwn(tx: Transaction, { name, holder, fence }: Lease): boolean {
  const current = tx.leases.get(name);
  return current?.holder === holder && current.fence === fence && current.expiresAt > tx.now;
}
