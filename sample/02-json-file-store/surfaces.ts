import { type NewSession, type Session, sessionLifecycle, type SurfaceRules } from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { ms, slotKey } from './tables.js';

/** Sees that no other live session of the user and workspace keeps the surfaces. @returns those that lost some */
export function claimSurfaces(
  store: Store,
  owner: Session | NewSession,
  surfaces: readonly string[],
  { policy, lifetime }: SurfaceRules,
): Session[] {
  if (policy === 'share') return [];
  const holders = new Map<string, Session>();
  for (const surface of surfaces) {
    for (const holder of store.sessions.by('slot', slotKey(owner, surface))) {
      if (holder.id !== owner.id) holders.set(holder.id, holder);
    }
  }
  if (policy === 'reject') {
    const holding = [...holders.values()].filter(
      (holder) => !sessionLifecycle.isAbandoned(holder, store.time(), lifetime),
    );
    sessionLifecycle.assertSurfaceFree(owner.id, surfaces, holding);
  }
  return [...holders.values()].map((holder) =>
    store.sessions.put(surfaces.reduce(sessionLifecycle.withoutSurface, holder)),
  );
}

/** The youngest session of the draft's slot, when it is young enough. */
export function adoptable(store: Store, draft: NewSession, recentMs: number): Session | undefined {
  const youngest = store.sessions.first('slot', slotKey(draft, draft.attachedSurfaces[0]));
  return youngest && ms(youngest.createdAt) >= store.now - recentMs ? youngest : undefined;
}
