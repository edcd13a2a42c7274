/** A right to do something alone, for a while, by the store's clock. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Grows with every new holder: what an older holder still writes can be told apart. */
  readonly fence: number;
}

/** Named leases for work that only one process should do at a time: cron runs and compaction. */
export interface LeaseStore {
  /** @returns the lease when it was free, lapsed or the holder's own; `null` while another holds it */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null>;
  /** @returns false when it was lost meanwhile */
  renew(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Without effect when it was lost meanwhile. */
  release(lease: Lease): Promise<void>;
}
