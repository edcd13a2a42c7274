import { HOUR, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of LeaseStore. */
export function describeLeases(context: ConformanceContext): void {
  describe('leases', () => {
    it('grants a lease to one holder at a time', async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const lease = await leases.acquire(name, 'a', HOUR);

      expect(lease).toEqual({ name, holder: 'a', fence: lease?.fence });
      expect(await leases.acquire(name, 'b', HOUR)).toBeNull();
      expect(await leases.acquire(context.id(), 'b', HOUR)).not.toBeNull();
    });

    it('grants a lease to one of many concurrent callers', async () => {
      const name = context.id();
      const holders = Array.from({ length: 20 }, (_, n) => `holder-${n}`);
      const leases = await Promise.all(holders.map((holder) => context.adapter.leases.acquire(name, holder, HOUR)));

      expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
    });

    it('grants the holder its own lease again', async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const lease = await leases.acquire(name, 'a', HOUR);

      expect(await leases.acquire(name, 'a', HOUR)).toEqual(lease);
    });

    it("grants a lapsed lease to the next holder with a higher fence, by the store's clock", async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const old = await acquired(name, 'a', SHORT);
      await context.elapse(SHORT + TICK);
      expect(await leases.renew(old, HOUR)).toBe(false);
      const lease = await acquired(name, 'b', HOUR);

      expect(lease.fence).toBeGreaterThan(old.fence);
      expect(await leases.renew(old, HOUR)).toBe(false);
      await leases.release(old);
      expect(await leases.acquire(name, 'c', HOUR)).toBeNull();
    });

    it('extends a renewed lease', async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const lease = await acquired(name, 'a', 1000);
      expect(await leases.renew(lease, HOUR)).toBe(true);
      await context.elapse(1000);

      expect(await leases.acquire(name, 'b', HOUR)).toBeNull();
      expect(await leases.renew(lease, HOUR)).toBe(true);
    });

    it('frees a released lease, and continues its fence', async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const first = await acquired(name, 'a', HOUR);
      await leases.release(first);
      expect(await leases.renew(first, HOUR)).toBe(false);
      const second = await acquired(name, 'b', HOUR);
      await leases.release(second);
      const third = await acquired(name, 'a', HOUR);

      expect(second.fence).toBeGreaterThan(first.fence);
      expect(third.fence).toBeGreaterThan(second.fence);
    });

    it('rejects a release or renewal of a lease that another holder has', async () => {
      const { leases } = context.adapter;
      const name = context.id();
      const lease = await acquired(name, 'a', HOUR);
      const forged = { ...lease, holder: 'b' };

      expect(await leases.renew(forged, HOUR)).toBe(false);
      expect(await leases.renew({ ...lease, fence: lease.fence - 1 }, HOUR)).toBe(false);
      await leases.release(forged);
      expect(await leases.acquire(name, 'b', HOUR)).toBeNull();
      expect(await leases.renew(lease, HOUR)).toBe(true);
    });

    async function acquired(
      name: string,
      holder: string,
      ttlMs: number,
    ): Promise<NonNullable<Awaited<ReturnType<typeof context.adapter.leases.acquire>>>> {
      const lease = await context.adapter.leases.acquire(name, holder, ttlMs);
      if (!lease) throw new Error(`The lease ${name} should have been free.`);
      return lease;
    }
  });
}
