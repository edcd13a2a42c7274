import { SessionConflictError } from '../../ledger/session.errors.js';
import { type Session } from '../../ledger/session.js';
import { create, createdFrom, draft, HOUR, insert, PLENTY } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const LONG_AGO = '2001-02-03T04:05:06.007Z';

/** Tests of rejected inserts and creates, and of delete and erase (SES-02, SES-15). */
export function describeSessionRemoval(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);

  it('SES-15 inserts a session unchanged', async () => {
    const session = await insert(context, {
      workspaceId: context.id(),
      state: 'suspended',
      createdAt: '2001-02-03T04:05:06.007Z',
      lastActivityAt: '2002-02-03T04:05:06.007Z',
      stateChangedAt: '2003-02-03T04:05:06.007Z',
      attachedSurfaces: ['web', 'slack'],
      metadata: { a: { b: [null] } },
      version: 7,
    });
    expect(await stored(session.id)).toEqual(session);
  });

  it('SES-15 updates the given fields and returns the stored session', async () => {
    const before = await insert(context, { metadata: { a: 1 }, attachedSurfaces: ['web'], workspaceId: 'w' });
    const after = await context.sessions.update(before.id, {
      state: 'suspended',
      stateChangedAt: '2030-02-03T04:05:06.007Z',
      version: 2,
    });

    expect(after).toEqual({
      ...before,
      state: 'suspended',
      stateChangedAt: '2030-02-03T04:05:06.007Z',
      version: 2,
    });
    expect(await stored(before.id)).toEqual(after);
  });

  it('SES-02 SES-14 rejects an existing id, and does not change the stored session', async () => {
    const before = await create(context, { metadata: { mine: true } });
    const theirs = draft(context, { id: before.id, metadata: { theirs: true }, attachedSurfaces: ['web'] });

    const onCreate = await createdFrom(context, theirs).catch((reason: unknown) => reason);
    expect(onCreate).toBeInstanceOf(SessionConflictError);
    expect(onCreate).toMatchObject({ sessionId: before.id });
    await expect(context.sessions.insert({ ...before, ...theirs })).rejects.toBeInstanceOf(SessionConflictError);

    expect(await stored(before.id)).toEqual(before);
    expect(await context.sessions.fetchMany({ userId: theirs.userId })).toEqual([]);
  });

  it('SES-02 accepts an id from exactly one of many concurrent creates', async () => {
    const id = context.id();
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => createdFrom(context, draft(context, { id, metadata: { n } }))),
    );
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const reasons = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));

    expect(won).toHaveLength(1);
    expect(reasons.every((reason) => reason instanceof SessionConflictError)).toBe(true);
    expect(await stored(id)).toEqual(won[0].session);
  });

  const removals: [string, (id: string) => Promise<void>][] = [
    ['delete', async (id) => void (await context.sessions.delete(id))],
    ['erase', async (id) => void (await context.sessions.erase(id))],
    [
      'purgeExpired',
      async (id) => {
        await context.sessions.expire(id);
        await context.sessions.update(id, { lastActivityAt: LONG_AGO, stateChangedAt: LONG_AGO });
        expect(await context.sessions.purgeExpired(HOUR, PLENTY)).toContain(id);
      },
    ],
  ];

  it.each(removals)(
    'SES-11 SES-15 %s removes a session with all data that belongs to it, and nothing else',
    async (_, remove) => {
      const [gone, kept] = [await populate(), await populate()];
      await remove(gone.session.id);

      expect(await contents(gone)).toEqual({
        session: null,
        found: 0,
        turn: null,
        turns: 0,
        messages: 0,
        checkpoint: null,
        checkpoints: 0,
        document: null,
      });
      expect(await contents(kept)).toMatchObject({
        session: { id: kept.session.id },
        found: 1,
        turn: { id: kept.turnId },
        turns: 1,
        messages: 1,
        checkpoint: { turnIndex: 0 },
        checkpoints: 1,
        document: { value: 'value' },
      });
    },
  );

  it('SES-15 deletes a missing session without an error', async () => {
    const { id } = await create(context);
    expect(await context.sessions.delete(id)).toBe(true);
    expect(await context.sessions.delete(id)).toBe(false);
    expect(await stored(id)).toBeNull();
  });

  it('SES-15 allows the id of a deleted session for a new one, which starts empty', async () => {
    const past = await populate();
    await context.sessions.delete(past.session.id);
    const session = await create(context, { id: past.session.id });

    expect(await stored(session.id)).toEqual(session);
    expect(await contents({ ...past, session })).toMatchObject({
      turns: 0,
      messages: 0,
      checkpoints: 0,
      document: null,
    });
    const { turn } = await accept(session.id);
    expect(turn.position).toBe(1);
  });

  it('SES-15 erases a session with all data that belongs to it, and never accepts its id again', async () => {
    const gone = await populate();
    await context.sessions.erase(gone.session.id);
    await context.sessions.erase(gone.session.id);

    expect(await contents(gone)).toMatchObject({ session: null, turn: null, turns: 0, messages: 0, checkpoint: null });
    await expect(create(context, { id: gone.session.id })).rejects.toBeInstanceOf(SessionConflictError);
    await expect(context.sessions.insert(gone.session)).rejects.toBeInstanceOf(SessionConflictError);
    await expect(accept(gone.session.id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await stored(gone.session.id)).toBeNull();
  });

  it('SES-15 rejects late writes to an erased session', async () => {
    const { session, orchestrator } = await populate();
    await context.sessions.erase(session.id);
    const writes: Record<string, () => Promise<unknown>> = {
      message: () => append(session.id),
      checkpoint: () => save(session.id, orchestrator),
      document: () => context.adapter.state.set(documentOf(session.id), 'late'),
      batch: () => context.adapter.state.append(documentOf(session.id), { id: 'late', entries: [1], initial: 'late' }),
      'batch of nothing': () => context.adapter.state.append(documentOf(session.id), { id: 'late', entries: [1] }),
    };
    for (const [name, write] of Object.entries(writes)) {
      const error = await write().catch((reason: unknown) => reason);
      expect({ name, error }).toMatchObject({ error: { code: 'SESSION_NOT_FOUND', sessionId: session.id } });
    }

    const { conversations, checkpoints, state } = context.adapter;
    expect(await conversations.page(session.id)).toEqual([]);
    expect(await checkpoints.history(orchestrator, session.id)).toEqual([]);
    expect(await state.get(documentOf(session.id))).toBeNull();
  });

  it('SES-15 remembers an erased id that never had a session', async () => {
    const id = context.id();
    await context.sessions.erase(id);
    await expect(create(context, { id })).rejects.toBeInstanceOf(SessionConflictError);
  });

  /** Creates a session with data in every port. */
  async function populate(): Promise<{ session: Session; turnId: string; orchestrator: string }> {
    const session = await create(context, { attachedSurfaces: ['web'] });
    const orchestrator = context.id();
    const { turn } = await accept(session.id);
    await append(session.id);
    await save(session.id, orchestrator);
    await context.adapter.state.set(documentOf(session.id), 'value');
    return { session, turnId: turn.id, orchestrator };
  }

  function append(sessionId: string): Promise<unknown> {
    const message = { id: context.id(), role: 'user', content: 'hello' } as const;
    return context.adapter.conversations.append(sessionId, [message]);
  }

  function save(sessionId: string, orchestrator: string): Promise<unknown> {
    const checkpoint = {
      orchestrator,
      sessionId,
      turnIndex: 0,
      state: {},
      lastRoute: [],
      signature: 's',
      version: '1',
      summarizedThrough: 0,
    };
    return context.adapter.checkpoints.append(checkpoint, 'all');
  }

  async function contents(of: Awaited<ReturnType<typeof populate>>): Promise<Record<string, unknown>> {
    const { sessions } = context;
    const { checkpoints, conversations, state, turns } = context.adapter;
    const { id, userId } = of.session;
    return {
      session: await sessions.fetchById(id),
      found: await sessions.count({ userId, surfaceId: 'web' }),
      turn: await turns.get(of.turnId),
      turns: (await turns.list({ sessionId: id })).length,
      messages: (await conversations.page(id)).length,
      checkpoint: await checkpoints.load(of.orchestrator, id),
      checkpoints: (await checkpoints.list(of.orchestrator)).length,
      document: await state.get(documentOf(id)),
    };
  }

  function accept(sessionId: string): ReturnType<typeof context.adapter.turns.accept> {
    return context.adapter.turns.accept({
      id: context.id(),
      sessionId,
      orchestrator: 'desk',
      version: '1',
      request: { input: { text: 'hello' } },
      attributes: {},
      whenBusy: 'enqueue',
      maxQueued: 10,
    });
  }
}

function documentOf(sessionId: string): { namespace: string; scope: string; sessionId: string; key: string } {
  return { namespace: 'n', scope: '', sessionId, key: 'k' };
}
