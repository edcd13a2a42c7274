import { type Lease } from '../../ledger/lease.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { ClientDriver, latest } from './client-driver.js';
import { action, type Specimen } from './specimen.js';
import { TimedModel } from './timed-model.js';

const HOLDERS = ['ann', 'bob', 'eve'] as const;

interface Acquiring {
  readonly type: 'acquire';
  readonly holder: string;
  readonly ttlMs: number;
}

/** `which` counts granted leases, the latest first: most calls come from the holder, some from an older one. */
type LeaseAction =
  | Acquiring
  | { readonly type: 'renew'; readonly which: number; readonly ttlMs: number }
  | { readonly type: 'release'; readonly which: number };

type LeaseOperation =
  | Acquiring
  | { readonly type: 'renew'; readonly lease: Held; readonly ttlMs: number }
  | { readonly type: 'release'; readonly lease: Held };

type Held = Omit<Lease, 'name'>;

/** The holders of a lease (LeaseStore). */
export const LEASE: Specimen<LeaseAction, LeaseOperation> = {
  actions(fc, { given }) {
    const holder = fc.constantFrom(...HOLDERS);
    const longest = fc.constant(Math.max(...given));
    const ttlMs = fc.oneof(longest, fc.constantFrom(...given));
    const which = fc.oneof(fc.constant(0), fc.nat(3));
    return fc.oneof(
      { weight: 3, arbitrary: action(fc, 'acquire', { holder, ttlMs }) },
      { weight: 2, arbitrary: action(fc, 'renew', { which, ttlMs }) },
      { weight: 2, arbitrary: action(fc, 'release', { which }) },
    );
  },
  reads: [],
  model: (durations) => new LeaseModel(durations),
  open: async (context) => new LeaseDriver(context.id()),
};

class LeaseModel extends TimedModel<LeaseOperation> {
  /** The lease that was granted last. */
  last: (Held & { readonly until: number }) | null = null;

  apply(operation: LeaseOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'acquire':
        return this.acquire(operation, seen as Held | null);
      case 'renew':
        return this.hold(operation.lease, operation.ttlMs);
      case 'release':
        this.hold(operation.lease, 0);
        return null;
    }
  }

  private acquire({ holder, ttlMs }: Acquiring, seen: Held | null): unknown {
    const { last } = this;
    const isHeld = last !== null && last.until > this.now;
    if (isHeld && last.holder !== holder) return null;
    const fence = this.fenceOf(holder, isHeld, seen?.fence);
    this.last = { holder, fence, until: this.now + ttlMs };
    return { holder, fence };
  }

  /** Returns the expected fence. It must increase for a new holder, and stay for a held lease. Others do not match. */
  private fenceOf(holder: string, isHeld: boolean, seen = -Infinity): number {
    const { last } = this;
    if (last === null) return seen;
    if (isHeld) return last.fence;
    const mayStay = last.holder === holder;
    return seen > last.fence || (mayStay && seen === last.fence) ? seen : Infinity;
  }

  private hold({ holder, fence }: Held, ttlMs: number): boolean {
    const { last } = this;
    if (last?.holder !== holder || last.fence !== fence || last.until <= this.now) return false;
    this.last = { ...last, until: this.now + ttlMs };
    return true;
  }
}

class LeaseDriver extends ClientDriver<LeaseAction, LeaseOperation> {
  private readonly granted: Held[] = [];

  plan(action: LeaseAction): LeaseOperation | null {
    if (action.type === 'acquire') return action;
    const { which, ...rest } = action;
    const lease = latest(this.granted, which);
    return lease ? { ...rest, lease } : null;
  }

  protected async call({ leases }: SessionsAdapter, operation: LeaseOperation): Promise<unknown> {
    switch (operation.type) {
      case 'acquire': {
        const lease = await leases.acquire(this.id, operation.holder, operation.ttlMs);
        if (!lease) return null;
        const { name: _, ...held } = lease;
        this.granted.push(held);
        return held;
      }
      case 'renew':
        return leases.renew({ name: this.id, ...operation.lease }, operation.ttlMs);
      case 'release':
        await leases.release({ name: this.id, ...operation.lease });
        return null;
    }
  }
}
