import {
  SESSION_STATES,
  type SessionState,
  SURFACE_LIMIT_POLICIES,
  SURFACE_POLICIES,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
} from '../../ledger/session.js';
import { action, type Durations, type FastCheck } from './specimen.js';
import type fc from 'fast-check';

export const NAMES = ['first', 'second', 'third'] as const;
export type Name = (typeof NAMES)[number];

/** Two sessions compete for the surfaces of one workspace; the third is in another workspace. */
export const WORKSPACES: Readonly<Record<Name, string | null>> = { first: null, second: null, third: 'elsewhere' };

const SURFACES = ['web', 'phone', 'voice'] as const;
export const MAX_SURFACES = 2;

const LONG = 'long'.repeat(10);
/** A limit that allows one long value and a short one. */
export const MAX_METADATA_BYTES = 70;

/** An operation on the sessions of one user. Actions are equal to operations here. */
export type SessionOperation =
  | ({ readonly type: 'create' } & Creation)
  | ({ readonly type: 'createOrAdopt'; readonly recentMs: number } & Creation)
  | OneSessionsChange
  | { readonly type: 'delete' | 'erase' | 'get'; readonly name: Name }
  | { readonly type: 'suspendStale' | 'purgeExpired'; readonly ms: number }
  | { readonly type: 'expireStale'; readonly idleMs: number | null; readonly maxMs: number | null }
  | { readonly type: 'find' | 'count'; readonly surface: string | null; readonly state: SessionState | null };

export interface Creation {
  readonly name: Name;
  readonly surface: string | null;
  readonly policy: SurfacePolicy;
}

/** An operation that needs a session and returns its change. */
export type OneSessionsChange =
  | { readonly type: 'touch'; readonly name: Name; readonly ttlMs: number | null; readonly maxMs: number | null }
  | {
      readonly type: 'attach';
      readonly name: Name;
      readonly surface: string;
      readonly policy: SurfacePolicy;
      readonly onLimit: SurfaceLimitPolicy;
    }
  | { readonly type: 'detach'; readonly name: Name; readonly surface: string }
  | { readonly type: 'merge'; readonly name: Name; readonly patch: Readonly<Record<string, string | null>> }
  | { readonly type: 'expire'; readonly name: Name };

export function sessionActions(fc: FastCheck, { given }: Durations): fc.Arbitrary<SessionOperation> {
  const name = fc.constantFrom(...NAMES, 'first', 'second');
  const ms = fc.constantFrom(...given);
  const msOrNone = fc.option(ms);
  const surface = fc.constantFrom(...SURFACES, 'web');
  const surfaceOrNone = fc.option(surface);
  const policy = fc.constantFrom(...SURFACE_POLICIES);
  const onLimit = fc.constantFrom(...SURFACE_LIMIT_POLICIES);
  const value = fc.option(fc.constantFrom('a', 'b', LONG));
  const patch = fc.dictionary(fc.constantFrom('note', 'plan'), value, { minKeys: 1, noNullPrototype: true });
  const state = fc.option(fc.constantFrom(...SESSION_STATES));
  return fc.oneof(
    { weight: 10, arbitrary: action(fc, 'create', { name, surface: surfaceOrNone, policy }) },
    { weight: 8, arbitrary: action(fc, 'createOrAdopt', { name, surface: surfaceOrNone, policy, recentMs: ms }) },
    { weight: 8, arbitrary: action(fc, 'touch', { name, ttlMs: msOrNone, maxMs: msOrNone }) },
    { weight: 10, arbitrary: action(fc, 'attach', { name, surface, policy, onLimit }) },
    { weight: 4, arbitrary: action(fc, 'detach', { name, surface }) },
    { weight: 6, arbitrary: action(fc, 'merge', { name, patch }) },
    { weight: 3, arbitrary: action(fc, 'suspendStale', { ms }) },
    { weight: 2, arbitrary: action(fc, 'expireStale', { idleMs: msOrNone, maxMs: msOrNone }) },
    { weight: 3, arbitrary: action(fc, 'purgeExpired', { ms }) },
    { weight: 3, arbitrary: action(fc, 'expire', { name }) },
    { weight: 4, arbitrary: action(fc, 'delete', { name }) },
    { weight: 1, arbitrary: action(fc, 'erase', { name }) },
    { weight: 2, arbitrary: action(fc, 'get', { name }) },
    { weight: 2, arbitrary: action(fc, 'find', { surface: surfaceOrNone, state }) },
    { weight: 1, arbitrary: action(fc, 'count', { surface: surfaceOrNone, state }) },
  );
}
