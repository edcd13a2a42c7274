import { type Bounds } from './lane-world.js';

const SMALL = { turns: 2, maxAttempts: 2, maxLost: 2, zombies: 1, whenBusy: ['enqueue'] } as const satisfies Bounds;
const POLICIES = ['enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'] as const;
const MODES = ['cancel', 'interrupt', 'rollback'] as const;

/** Each world covers one part of the table; together they cover every call. */
export const WORLDS = {
  crashes: { ...SMALL, turns: 3, steps: true },
  losses: { ...SMALL, maxLost: 4, zombies: 0 },
  policies: { ...SMALL, turns: 3, zombies: 0, whenBusy: POLICIES },
  cancels: { ...SMALL, whenBusy: ['enqueue', 'replace'], cancel: MODES, expire: true },
  waits: { ...SMALL, whenBusy: ['enqueue', 'rollback'], signals: ['a', 'b'] },
} as const satisfies Readonly<Record<string, Bounds>>;

/** The same worlds with larger bounds, and one with all parts. */
export const LARGE_WORLDS: Readonly<Record<string, Bounds>> = {
  'more crashes': { ...WORLDS.crashes, maxAttempts: 3, maxLost: 3, zombies: 2 },
  'more losses': { ...WORLDS.losses, turns: 3, maxLost: 5, steps: true },
  'more policies': { ...WORLDS.policies, zombies: 1, cancel: MODES },
  'more cancels': { ...WORLDS.cancels, zombies: 2, whenBusy: POLICIES, steps: true },
  'more waits': { ...WORLDS.waits, zombies: 2, cancel: ['interrupt'], steps: true },
  everything: { ...SMALL, whenBusy: POLICIES, cancel: MODES, signals: ['a', 'b'], steps: true, expire: true },
};
