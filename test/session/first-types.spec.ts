import {
  type AffinityResolver,
  createSessionStore,
  InMemorySessionStoreAdapter,
  resolveSession,
  type Session,
  type SessionStore,
  type SessionStoreAdapter,
} from 'nestjs-agent-sessions';

/** The types of the first specification of this package. */
interface FirstSession {
  id: string;
  userId: string;
  workspaceId?: string;
  state: 'created' | 'active' | 'suspended' | 'expired';
  createdAt: string;
  lastActivityAt: string;
  stateChangedAt?: string;
  attachedSurfaces: string[];
  metadata: Record<string, unknown>;
}

interface FirstQuery {
  userId?: string;
  workspaceId?: string;
  state?: FirstSession['state'] | FirstSession['state'][];
  surfaceId?: string;
  activeAfter?: string;
  limit?: number;
}

interface FirstAdapter {
  insert(session: FirstSession): Promise<void>;
  fetchById(sessionId: string): Promise<FirstSession | null>;
  fetchMany(query: FirstQuery): Promise<FirstSession[]>;
  update(sessionId: string, patch: Partial<FirstSession>): Promise<FirstSession>;
  delete(sessionId: string): Promise<void>;
}

interface FirstStore {
  create(input: {
    id: string;
    userId: string;
    workspaceId?: string;
    initialSurfaceId?: string;
    metadata?: Record<string, unknown>;
  }): Promise<FirstSession>;
  get(sessionId: string): Promise<FirstSession | null>;
  find(query: FirstQuery): Promise<FirstSession[]>;
  touch(sessionId: string): Promise<FirstSession>;
  attachSurface(sessionId: string, surfaceId: string): Promise<FirstSession>;
  detachSurface(sessionId: string, surfaceId: string): Promise<FirstSession>;
  expire(sessionId: string): Promise<FirstSession>;
  sweepStale(ttlMs: number): Promise<FirstSession[]>;
  updateMetadata(sessionId: string, metadata: Record<string, unknown>): Promise<FirstSession>;
}

interface FirstResolver {
  resolve(userId: string, surfaceId?: string): Promise<FirstSession | null>;
}

// Checked by the compiler: each line fails if a type is not assignable.
export const toOurs = {
  session: (session: FirstSession): Session => session,
  adapter: (adapter: FirstAdapter): SessionStoreAdapter => adapter,
  // As of a driver whose delete resolves with a count.
  counting: (adapter: Omit<FirstAdapter, 'delete'> & { delete(sessionId: string): Promise<unknown> }) =>
    createSessionStore({ adapter }),
  resolver: (resolver: FirstResolver): AffinityResolver => resolver,
  store: (store: FirstStore, resolver: FirstResolver) => resolveSession({ userId: 'ann' }, store, resolver),
};
export const toTheirs = {
  session: (session: Session): FirstSession => session,
  adapter: (adapter: SessionStoreAdapter): FirstAdapter => adapter,
  resolver: (resolver: AffinityResolver): FirstResolver => resolver,
  store: (store: SessionStore): FirstStore => store,
};

describe('code for the first specification', () => {
  it('FIX-89 answers a message of a workspace in the session without one that its resolver returns', async () => {
    const store = createSessionStore({ adapter: new InMemorySessionStoreAdapter() });
    const sessions = {
      none: await store.create({ id: 'none', userId: 'ann' }),
      own: await store.create({ id: 'own', userId: 'ann', workspaceId: 'acme' }),
      other: await store.create({ id: 'other', userId: 'ann', workspaceId: 'other' }),
      bob: await store.create({ id: 'bob', userId: 'bob' }),
    };
    const answered = async (id: keyof typeof sessions): Promise<string> => {
      const resolver: FirstResolver = { resolve: async () => sessions[id] };
      return (await resolveSession({ userId: 'ann', workspaceId: 'acme' }, store, resolver)).id;
    };
    expect([await answered('none'), await answered('own')]).toEqual(['none', 'own']);
    expect(['other', 'bob']).not.toContain(await answered('other'));
    expect(['other', 'bob']).not.toContain(await answered('bob'));
    const untouched = await Promise.all(['other', 'bob'].map((id) => store.get(id)));
    expect(untouched.map((session) => session?.state)).toEqual(['created', 'created']);
  });

  it('FIX-43 calls a resolver of user and surface that has an additional parameter', async () => {
    const store = createSessionStore({ adapter: new InMemorySessionStoreAdapter() });
    const existing: FirstSession = await store.create({ id: 's1', userId: 'ann', initialSurfaceId: 'web' });
    const asked: unknown[] = [];
    const resolver: FirstResolver = {
      async resolve(userId: string, surfaceId?: string, now = 'the default') {
        asked.push([userId, surfaceId, now]);
        return existing;
      },
    };
    const session: FirstSession = await resolveSession({ userId: 'ann', surfaceId: 'web' }, store, resolver);
    const none: FirstResolver = { resolve: async () => null };
    const fresh = await resolveSession({ userId: 'ann', surfaceId: 'web' }, store, none);

    expect(asked).toEqual([['ann', 'web', 'the default']]);
    expect(session).toMatchObject({ id: 's1', state: 'active' });
    expect(fresh.id).not.toBe('s1');
    expect(fresh).toMatchObject({ state: 'created', attachedSurfaces: ['web'] });
  });
});
