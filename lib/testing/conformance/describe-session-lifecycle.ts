import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type Session, type SessionChange } from '../../ledger/session.js';
import { create, createActive, createdFrom, draft, HOUR, insertIdle, PLENTY, RULES, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const ENDS = ['expire', 'revoke'] as const;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Tests of create, touch and expire (SES-01, SES-02, SES-03, SES-05, SES-08, SES-13). */
export function describeSessionLifecycle(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);

  it('SES-01 SES-02 stores a new session as given, in state created, with UTC times', async () => {
    const given = draft(context, {
      workspaceId: context.id(),
      attachedSurfaces: ['web'],
      metadata: { plan: { name: 'pro', seats: [1, 2] }, note: null },
    });
    const { session, ...rest } = await createdFrom(context, given);

    expect(session).toEqual({
      ...given,
      state: 'created',
      createdAt: session.lastActivityAt,
      lastActivityAt: session.createdAt,
      version: 1,
    });
    expect(rest).toEqual({ created: true, movedFrom: [] });
    expect(session.createdAt).toMatch(ISO);
    expect(await stored(session.id)).toEqual(session);
  });

  it('SES-01 omits workspaceId and stateChangedAt when they do not exist', async () => {
    const { id } = await create(context);
    const session = await stored(id);

    expect(session).not.toHaveProperty('workspaceId');
    expect(session).not.toHaveProperty('stateChangedAt');
  });

  it('SES-01 counts every stored change in the version, and nothing else', async () => {
    const { sessions } = context;
    const { id } = await create(context);
    const versions: number[] = [1];
    const after = async (change: Promise<SessionChange>): Promise<void> => {
      const { session, changed } = await change;
      const { version = 0 } = session;
      expect((await stored(id))?.version).toBe(version);
      expect(changed).toBe(version > versions[versions.length - 1]);
      versions.push(version);
    };

    await after(sessions.attachSurface(id, 'web', RULES));
    await after(sessions.attachSurface(id, 'web', RULES));
    await after(sessions.touch(id));
    await after(sessions.mergeMetadata(id, { a: 1 }, PLENTY));
    await after(sessions.mergeMetadata(id, { a: 1, b: null }, PLENTY));
    await after(sessions.mergeMetadata(id, {}, PLENTY));
    await after(sessions.detachSurface(id, 'web'));
    await after(sessions.detachSurface(id, 'web'));
    await after(sessions.expire(id));
    await after(sessions.expire(id));

    expect(versions).toEqual([1, 2, 2, 3, 4, 4, 4, 5, 5, 6, 6]);
  });

  it("SES-01 sets times by the store's clock", async () => {
    const { id, createdAt } = await create(context);
    await context.elapse(20);
    const { session: touched } = await context.sessions.touch(id);
    await context.elapse(20);
    const { session: expired } = await context.sessions.expire(id);

    expect(Date.parse(touched.lastActivityAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(15);
    expect(touched.stateChangedAt).toBe(touched.lastActivityAt);
    expect(Date.parse(expired.stateChangedAt ?? '') - Date.parse(touched.lastActivityAt)).toBeGreaterThanOrEqual(15);
    expect(expired.stateChangedAt).toMatch(ISO);
  });

  it('SES-02 copies sessions on write and on read', async () => {
    const given = draft(context, { attachedSurfaces: ['web'], metadata: { list: [{ n: 1 }] } });
    const patch = { added: { deep: ['x'] } };
    const { id } = (await createdFrom(context, given)).session;
    await context.sessions.mergeMetadata(id, patch, PLENTY);
    const expected = JSON.parse(JSON.stringify(await stored(id))) as Session;

    const handedOut = [
      await context.sessions.fetchById(id),
      ...(await context.sessions.fetchMany({ userId: given.userId })),
      (await context.sessions.attachSurface(id, 'web', RULES)).session,
      (await context.sessions.touch(id)).session,
    ];
    for (const session of handedOut) vandalize(session);
    vandalize(given);
    patch.added.deep.push('more');

    expect(await stored(id)).toMatchObject({
      attachedSurfaces: expected.attachedSurfaces,
      metadata: expected.metadata,
    });
    expect((await context.sessions.fetchMany({ userId: expected.userId }))[0].metadata).toEqual(expected.metadata);
  });

  it('SES-03 finds a session by id in every state, and returns null for an unknown id', async () => {
    const { sessions } = context;
    const { id } = await create(context);
    expect(await stored(id)).toMatchObject({ id, state: 'created' });
    await sessions.touch(id);
    expect(await stored(id)).toMatchObject({ id, state: 'active' });
    await sessions.update(id, { state: 'suspended' });
    expect(await stored(id)).toMatchObject({ id, state: 'suspended' });
    await sessions.expire(id);
    expect(await stored(id)).toMatchObject({ id, state: 'expired' });

    expect(await stored(context.id())).toBeNull();
  });

  it('SES-05 activates a created session and reports a cold start', async () => {
    const before = await create(context);
    await context.elapse(TICK);
    const { session, previousState } = await context.sessions.touch(before.id);

    expect(previousState).toBe('created');
    expect(session).toEqual({
      ...before,
      state: 'active',
      stateChangedAt: session.lastActivityAt,
      lastActivityAt: session.lastActivityAt,
      version: 2,
    });
    expect(session.lastActivityAt > before.lastActivityAt).toBe(true);
    expect(await stored(before.id)).toEqual(session);
  });

  it('SES-05 updates only the activity of an active session', async () => {
    const before = await createActive(context);
    await context.elapse(TICK);
    const { session, previousState } = await context.sessions.touch(before.id);

    expect(previousState).toBe('active');
    expect(session).toEqual({ ...before, lastActivityAt: session.lastActivityAt, version: 3 });
    expect(session.lastActivityAt > before.lastActivityAt).toBe(true);
    expect(await stored(before.id)).toEqual(session);
  });

  it('SES-05 resumes a suspended session and reports it', async () => {
    const { id } = await insertIdle(context, 2 * HOUR);
    await context.sessions.suspendStale(HOUR, PLENTY);
    const before = await stored(id);
    expect(before?.state).toBe('suspended');
    await context.elapse(TICK);
    const { session, previousState } = await context.sessions.touch(id);

    expect(previousState).toBe('suspended');
    expect(session.state).toBe('active');
    expect(session.stateChangedAt).toBe(session.lastActivityAt);
    expect(session.stateChangedAt).not.toBe(before?.stateChangedAt);
    expect(await stored(id)).toEqual(session);
  });

  it('FIX-44 resumes an active session that was idle for longer than its TTL', async () => {
    const before = await insertIdle(context, HOUR);
    const { session: awake } = await context.sessions.touch((await insertIdle(context, HOUR)).id, { ttlMs: 2 * HOUR });
    const { session, previousState, changed } = await context.sessions.touch(before.id, { ttlMs: HOUR - 1 });

    expect(awake.stateChangedAt).not.toBe(awake.lastActivityAt);
    expect({ previousState, changed }).toEqual({ previousState: 'suspended', changed: true });
    expect(session).toEqual({
      ...before,
      lastActivityAt: session.lastActivityAt,
      stateChangedAt: session.lastActivityAt,
      version: (before.version ?? 0) + 1,
    });
    expect(await context.sessions.fetchById(before.id)).toEqual(session);
    expect(await context.sessions.touch(before.id, { ttlMs: HOUR })).toMatchObject({ previousState: 'active' });
    expect(await context.sessions.fetchMany({ userId: before.userId, state: 'active' })).toHaveLength(1);
    expect(await context.sessions.count({ userId: before.userId, state: 'suspended' })).toBe(0);
  });

  it('FIX-44 does not treat an unused session as suspended', async () => {
    const { id } = await insertIdle(context, HOUR, { state: 'created' });

    expect(await context.sessions.touch(id, { ttlMs: 1 })).toMatchObject({ previousState: 'created' });
  });

  it('SES-05 SES-14 rejects a touch of an expired session and changes nothing', async () => {
    const { id } = await createActive(context);
    const { session: expired } = await context.sessions.expire(id);
    await context.elapse(TICK);
    const error = await context.sessions.touch(id).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(SessionStateError);
    expect(error).toMatchObject({ sessionId: id, currentState: 'expired', attemptedTransition: 'touch' });
    expect(await stored(id)).toEqual(expired);
  });

  it.each(ENDS)('SES-08 NST-18 %s: a session expires from any state, and keeps its activity time', async (end) => {
    const created = await create(context);
    const active = await createActive(context);
    const suspended = await insertIdle(context, HOUR, { state: 'suspended' });
    await context.elapse(TICK);

    for (const before of [created, active, suspended]) {
      const { session: after, ...change } = await context.sessions[end](before.id);
      expect(change).toEqual({ previousState: before.state, changed: true });
      expect(after).toEqual({
        ...before,
        state: 'expired',
        stateChangedAt: after.stateChangedAt,
        version: (before.version ?? 0) + 1,
      });
      expect((after.stateChangedAt ?? '') > before.lastActivityAt).toBe(true);
      expect(await stored(before.id)).toEqual(after);
    }
  });

  it.each(ENDS)('SES-08 NST-18 %s returns the same record when the session has already expired', async (end) => {
    const { id } = await create(context);
    const { session: expired } = await context.sessions.expire(id);
    await context.elapse(TICK);

    expect(await context.sessions[end](id)).toEqual({ session: expired, previousState: 'expired', changed: false });
    expect(await stored(id)).toEqual(expired);
  });

  it('SES-13 names the missing id', async () => {
    const { sessions } = context;
    const id = context.id();
    const calls: Record<string, () => Promise<unknown>> = {
      touch: () => sessions.touch(id),
      attachSurface: () => sessions.attachSurface(id, 'web', RULES),
      detachSurface: () => sessions.detachSurface(id, 'web'),
      expire: () => sessions.expire(id),
      revoke: () => sessions.revoke(id),
      mergeMetadata: () => sessions.mergeMetadata(id, { a: 1 }, PLENTY),
      update: () => sessions.update(id, { metadata: {} }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await call().catch((reason: unknown) => reason);
      expect({ name, found: error instanceof SessionNotFoundError, error }).toMatchObject({
        found: true,
        error: { sessionId: id },
      });
    }
    expect(await stored(id)).toBeNull();
  });
}

/** Changes every mutable part of a value. */
function vandalize(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  for (const inner of Object.values(value)) vandalize(inner);
  if (Array.isArray(value)) value.push('vandalized');
  else Object.assign(value, { vandalized: true });
}
