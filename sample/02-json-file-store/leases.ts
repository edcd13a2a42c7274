import { type LeaseStore } from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { type LeaseRow } from './tables.js';

export const leasesPort = (store: Store): LeaseStore => ({
  acquire: (name, holder, ttlMs) =>
    store.commit(() => {
      const held = heldLease(store, name);
      if (held && held.holder !== holder) return null;
      const fence = held?.fence ?? (store.leases.get(name)?.fence ?? 0) + 1;
      store.leases.put({ name, holder, fence, until: store.now + ttlMs });
      return { name, holder, fence };
    }),
  renew: ({ name, holder, fence }, ttlMs) =>
    store.commit(() => {
      const held = heldLease(store, name);
      if (held?.holder !== holder || held.fence !== fence) return false;
      store.leases.put({ ...held, until: store.now + ttlMs });
      return true;
    }),
  release: ({ name, holder, fence }) =>
    store.commit(() => {
      const held = heldLease(store, name);
      if (held?.holder === holder && held.fence === fence) store.leases.put({ ...held, until: store.now });
    }),
});

/** A row stays for ever, for its fence; only until its time is it held. */
function heldLease(store: Store, name: string): LeaseRow | undefined {
  const lease = store.leases.get(name);
  return lease && lease.until > store.now ? lease : undefined;
}
