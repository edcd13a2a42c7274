import { TooLargeError } from '../../common/sessions.error.js';
import { SessionStateError, SurfaceLimitError } from '../../ledger/session.errors.js';
import { type Session, type SurfaceChange, type SurfaceRules } from '../../ledger/session.js';
import { create, createActive, HOSTILE_NAMES, HOUR, insertIdle, PLENTY, RULES, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of surfaces (SES-06) and metadata (SES-12). */
export function describeSessionContents(context: ConformanceContext): void {
  describeSurfaces(context);
  describeMetadata(context);
}

function describeSurfaces(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);

  const atMostTwo: SurfaceRules = { ...RULES, maxSurfaces: 2, onLimit: 'reject' };
  const unchanged = (session: Session): SurfaceChange => ({
    session,
    previousState: 'created',
    changed: false,
    movedFrom: [],
    detached: [],
  });

  it('SES-06 stores surfaces as an ordered set and does not change the activity time', async () => {
    const { sessions } = context;
    const before = await create(context, { attachedSurfaces: ['web'] });
    await context.elapse(TICK);
    await sessions.attachSurface(before.id, 'slack', RULES);
    await sessions.attachSurface(before.id, 'phone', RULES);
    await sessions.attachSurface(before.id, 'web', RULES);
    await sessions.detachSurface(before.id, 'slack');
    const after = await sessions.attachSurface(before.id, 'slack', RULES);

    expect(after).toEqual({
      session: { ...before, attachedSurfaces: ['web', 'phone', 'slack'], version: 5 },
      previousState: 'created',
      changed: true,
      movedFrom: [],
      detached: [],
    });
    expect(await stored(before.id)).toEqual(after.session);
  });

  it('SES-06 ignores a repeated attach or detach', async () => {
    const before = await create(context, { attachedSurfaces: ['web'] });
    await context.elapse(TICK);

    expect(await context.sessions.attachSurface(before.id, 'web', RULES)).toEqual(unchanged(before));
    expect(await context.sessions.detachSurface(before.id, 'slack')).toEqual({
      session: before,
      previousState: 'created',
      changed: false,
    });
    expect(await stored(before.id)).toEqual(before);
  });

  it('SES-06 rejects an attach to an expired session, but allows a detach', async () => {
    const { id } = await create(context, { attachedSurfaces: ['web', 'slack'] });
    const { session: expired } = await context.sessions.expire(id);
    const error = await context.sessions.attachSurface(id, 'phone', RULES).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(SessionStateError);
    expect(error).toMatchObject({ sessionId: id, currentState: 'expired', attemptedTransition: 'attachSurface' });
    expect(await stored(id)).toEqual(expired);
    expect(await context.sessions.detachSurface(id, 'web')).toMatchObject({
      session: { state: 'expired', attachedSurfaces: ['slack'] },
      previousState: 'expired',
      changed: true,
    });
  });

  it('SES-06 rejects a surface over the limit, but not a repeated attach', async () => {
    const before = await create(context, { attachedSurfaces: ['web', 'slack'] });
    const error = await context.sessions
      .attachSurface(before.id, 'phone', atMostTwo)
      .catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(SurfaceLimitError);
    expect(error).toMatchObject({ sessionId: before.id, limit: 2 });
    expect(await context.sessions.attachSurface(before.id, 'slack', atMostTwo)).toEqual(unchanged(before));
    expect(await stored(before.id)).toEqual(before);
  });

  it('FIX-45 detaches the oldest surfaces of a session at its limit', async () => {
    const { sessions } = context;
    const before = await create(context, { attachedSurfaces: ['a', 'b', 'c', 'd'] });
    const attach = (surface: string, maxSurfaces: number): Promise<SurfaceChange> =>
      sessions.attachSurface(before.id, surface, { ...RULES, maxSurfaces, onLimit: 'detach' });

    expect(await attach('b', 2)).toEqual(unchanged(before));
    expect(await attach('e', 4)).toEqual({
      session: { ...before, attachedSurfaces: ['b', 'c', 'd', 'e'], version: 2 },
      previousState: 'created',
      changed: true,
      movedFrom: [],
      detached: ['a'],
    });
    // The limit was lowered.
    expect(await attach('f', 2)).toMatchObject({
      session: { attachedSurfaces: ['e', 'f'], version: 3 },
      detached: ['b', 'c', 'd'],
    });
    expect(await attach('g', 1)).toMatchObject({ session: { attachedSurfaces: ['g'] }, detached: ['e', 'f'] });
    expect(await sessions.fetchMany({ userId: before.userId, surfaceId: 'f' })).toEqual([]);
    expect(await sessions.fetchMany({ userId: before.userId, surfaceId: 'g' })).toHaveLength(1);
  });

  it('FIX-45 stays within the limit when many surfaces are attached at once', async () => {
    const { id } = await create(context);
    const surfaces = Array.from({ length: 20 }, (_, n) => `surface-${n}`);
    const changes = await Promise.all(
      surfaces.map((surface) => context.sessions.attachSurface(id, surface, { ...RULES, maxSurfaces: 5 })),
    );
    const held = (await stored(id))?.attachedSurfaces ?? [];

    expect(held).toHaveLength(5);
    // Each of the other surfaces was detached once.
    const lost = changes.flatMap(({ detached }) => detached);
    expect([...lost, ...held].sort()).toEqual(surfaces.sort());
  });

  it('SES-06 distinguishes surfaces by every character', async () => {
    const { id } = await create(context);
    for (const name of HOSTILE_NAMES)
      await context.sessions.attachSurface(id, name, { ...RULES, maxSurfaces: HOSTILE_NAMES.length });
    expect((await stored(id))?.attachedSurfaces).toEqual(HOSTILE_NAMES);

    for (const name of HOSTILE_NAMES.slice(1)) await context.sessions.detachSurface(id, name);
    expect((await stored(id))?.attachedSurfaces).toEqual(HOSTILE_NAMES.slice(0, 1));
  });
}

function describeMetadata(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);

  it('SES-12 merges top-level keys, removes null keys, and replaces complete values', async () => {
    const before = await create(context, { metadata: { keep: 1, drop: 2, nested: { a: 1 }, empty: null } });
    await context.elapse(TICK);
    const after = await context.sessions.mergeMetadata(
      before.id,
      { drop: null, nested: { b: null }, added: ['x'], unknown: null },
      PLENTY,
    );

    expect(after).toEqual({
      session: { ...before, metadata: { keep: 1, nested: { b: null }, added: ['x'], empty: null }, version: 2 },
      previousState: 'created',
      changed: true,
    });
    expect(await stored(before.id)).toEqual(after.session);
  });

  it('SES-12 merges in any state and does not change the activity time', async () => {
    const sessions = [
      await createActive(context),
      await insertIdle(context, HOUR, { state: 'suspended' }),
      await insertIdle(context, HOUR, { state: 'expired' }),
    ];
    for (const before of sessions) {
      const after = await context.sessions.mergeMetadata(before.id, { note: before.state }, PLENTY);
      expect(after).toEqual({
        session: { ...before, metadata: { note: before.state }, version: (before.version ?? 0) + 1 },
        previousState: before.state,
        changed: true,
      });
    }
  });

  it('SES-12 rejects a result that is too large in UTF-8, and changes nothing', async () => {
    const before = await create(context, { metadata: { a: 'x'.repeat(40) } });
    const text = { b: '👩'.repeat(10) };
    const maxBytes = Buffer.byteLength(JSON.stringify({ ...before.metadata, ...text }));
    const error = await context.sessions
      .mergeMetadata(before.id, text, maxBytes - 1)
      .catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(TooLargeError);
    expect(error).toMatchObject({ bytes: maxBytes, maxBytes: maxBytes - 1 });
    expect(await stored(before.id)).toEqual(before);
    const { session } = await context.sessions.mergeMetadata(before.id, text, maxBytes);
    expect(session.metadata).toEqual({
      ...before.metadata,
      ...text,
    });
  });

  it('SES-12 returns every key and value unchanged', async () => {
    const keys = HOSTILE_NAMES.filter((name) => name !== '__proto__');
    const metadata = {
      ...Object.fromEntries(keys.map((key) => [key, key])),
      '': 'an empty key',
      'a\u0000b': 'NUL \u0000, line\nbreak, \u2028, lone \ud83d surrogate',
      numbers: [0.1, 1e21, 1e-7, -1.5, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, 5e-324],
      empties: [{}, [], '', null, false, 0],
    };
    const { id } = await create(context, { metadata });
    expect((await stored(id))?.metadata).toEqual(metadata);

    const other = await create(context);
    await context.sessions.mergeMetadata(other.id, metadata, PLENTY);
    expect((await stored(other.id))?.metadata).toEqual(metadata);
  });
}
