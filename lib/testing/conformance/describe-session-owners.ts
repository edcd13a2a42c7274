import { SessionConflictError, SessionNotFoundError } from '../../ledger/session.errors.js';
import { type Session } from '../../ledger/session.js';
import { RULES } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';
import { LONG_MS, TestLane } from './test-lane.js';

const ROUNDS = 10;

/** Tests of operations that require the session which their caller has read (FIX-90). */
export function describeSessionOwners(context: ConformanceContext): void {
  const operations: Record<string, (lane: TestLane, required: Session) => Promise<unknown>> = {
    touch: ({ sessionId }, required) => context.sessions.touch(sessionId, {}, required),
    attachSurface: ({ sessionId }, required) => context.sessions.attachSurface(sessionId, 'late', RULES, required),
    revoke: ({ sessionId }, required) => context.sessions.revoke(sessionId, required),
    accept: (lane, required) => lane.accept('late', { requireSession: required }),
  };
  const kinds = Object.keys(operations);

  it.each(kinds)('FIX-90 %s acts on the required session only', async (kind) => {
    const { lane, first, second } = await replaced();
    const before = await lane.snapshot();

    for (const other of others(first, second)) {
      await expect(operations[kind](lane, other)).rejects.toBeInstanceOf(SessionNotFoundError);
    }
    expect(await lane.snapshot()).toEqual(before);

    await operations[kind](lane, second);
    expect(await lane.snapshot()).not.toEqual(before);
    await context.sessions.delete(lane.sessionId);
    await expect(operations[kind](lane, second)).rejects.toBeInstanceOf(SessionNotFoundError);
  });

  it('FIX-90 erase acts on the required session only', async () => {
    const { lane, first, second } = await replaced();
    const { sessionId } = lane;
    const before = await lane.snapshot();

    for (const other of others(first, second)) expect(await context.sessions.erase(sessionId, other)).toBe(false);
    expect(await lane.snapshot()).toEqual(before);
    // The id has no tombstone.
    await context.sessions.delete(sessionId);
    await lane.createSession();

    expect(await context.sessions.erase(sessionId, await stored(lane))).toBe(true);
    await expect(lane.createSession()).rejects.toBeInstanceOf(SessionConflictError);
  });

  it('FIX-90 erase remembers the id of the required session, if it was deleted', async () => {
    const lane = await TestLane.open(context);
    const session = await stored(lane);
    await context.sessions.delete(lane.sessionId);

    expect(await context.sessions.erase(lane.sessionId, session)).toBe(false);
    await expect(lane.createSession()).rejects.toBeInstanceOf(SessionConflictError);
  });

  it('FIX-90 accept returns no turn of another session that has the same idempotency key', async () => {
    const { lane, first, second } = await replaced();
    const idempotency = { key: 'key', hash: 'hash', ttlMs: LONG_MS };
    const { id } = await lane.queue('own', { idempotency });
    const before = await lane.snapshot();

    for (const hash of ['hash', 'another hash']) {
      const late = lane.accept('late', { idempotency: { ...idempotency, hash }, requireSession: first });
      await expect(late).rejects.toBeInstanceOf(SessionNotFoundError);
    }
    expect(await lane.snapshot()).toEqual(before);
    const repeated = await lane.accept('own', { idempotency, requireSession: second });
    expect(repeated).toMatchObject({ turn: { id }, duplicate: true });
  });

  it.each(kinds)('FIX-90 %s does nothing to a session that gets the id concurrently', async (kind) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const lane = await TestLane.open(context);
      const operation = operations[kind](lane, await stored(lane));
      const done = operation.catch((error: unknown) => expect(error).toBeInstanceOf(SessionNotFoundError));
      await Promise.all([done, replace(lane, round)]);

      expect(await stored(lane)).toMatchObject({ state: 'created', attachedSurfaces: ['web'], version: 1 });
      expect(await lane.list()).toEqual([]);
    }
  });

  it('FIX-90 erase keeps a session that gets the id concurrently', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const lane = await TestLane.open(context);
      const { sessionId } = lane;
      const erased = context.sessions.erase(sessionId, await stored(lane));
      // If the erase is first, the id cannot be created again.
      const created = replace(lane, round).then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(SessionConflictError);
          return false;
        },
      );
      const [, exists] = await Promise.all([erased, created]);

      expect((await context.sessions.fetchById(sessionId)) !== null).toBe(exists);
    }
  });

  /** Returns a session with a running and a queued turn, and the session that had its id before. */
  async function replaced(): Promise<{ lane: TestLane; first: Session; second: Session }> {
    const lane = await TestLane.open(context);
    const first = await stored(lane);
    await replace(lane);
    await lane.run('running');
    await lane.queue('queued');
    return { lane, first, second: await stored(lane) };
  }

  /** Deletes the session, and creates another one with its id. */
  async function replace(lane: TestLane, round = 0): Promise<void> {
    await context.clients[round % context.clients.length].sessions.delete(lane.sessionId);
    await lane.createSession();
  }

  async function stored({ sessionId }: TestLane): Promise<Session> {
    const session = await context.sessions.fetchById(sessionId);
    if (!session) throw new Error('The session does not exist.');
    return session;
  }
}

/** Returns sessions with the id of the second one. */
function others(first: Session, second: Session): Session[] {
  return [first, { ...second, userId: first.userId }, { ...second, createdAt: new Date(0).toISOString() }];
}
