/** An exclusive right for a limited time, by the store's clock. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Increases with every new holder, so that writes of an earlier holder can be detected. */
  readonly fence: number;
}

/** Named leases for work that only one process may do at a time, such as a run of the sweep. */
export interface LeaseStore {
  /** @returns the lease if it was free, expired or the holder's own; `null` if another holder has it */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null>;
  /** @returns false if the lease was lost */
  renew(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Ignored if the lease was lost. */
  release(lease: Lease): Promise<void>;
}
