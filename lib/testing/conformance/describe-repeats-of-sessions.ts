import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { type Session, SURFACE_POLICIES, type SurfacePolicy } from '../../ledger/session.js';
import { create, draft, HOUR, idsOf, insertIdle, PLENTY, RULES, TICK } from './session-fixtures.js';
import { type Call, itMayBeSentTwice, Refused } from './sent-twice.js';
import { TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const CONFLICT = (): Refused => new Refused('SESSION_CONFLICT');

/** Tests that operations of AtomicSessionStoreAdapter may be sent again after a lost response. */
export function describeRepeatsOfSessions(context: ConformanceContext): void {
  const { id } = context;
  const by = (policy: SurfacePolicy) => ({ ...RULES, policy });
  /** Registers the tests of a call on the sessions of one user. */
  const repeat = <Answer>(
    title: string,
    prepare: (userId: string) => Promise<Pick<Call<Answer>, 'send' | 'again'>>,
  ): void =>
    itMayBeSentTwice(title, context, async () => {
      const userId = id();
      const call = await prepare(userId);
      return { look: async () => (await context.sessions.fetchMany({ userId })).sort(byContents), ...call };
    });

  repeat('SES-15 insert', async (userId) => {
    const now = new Date(0).toISOString();
    const times = { createdAt: now, lastActivityAt: now };
    const session: Session = { ...draft(context, { userId }), ...times, state: 'active', version: 3 };
    return { send: (client) => atomic(client).insert(session), again: CONFLICT };
  });

  for (const policy of SURFACE_POLICIES) {
    repeat(`SES-02 SES-07 create, ${policy}`, async (userId) => {
      const held = policy === 'reject' ? [] : ['web'];
      await create(context, { userId, attachedSurfaces: held });
      const given = draft(context, { userId, attachedSurfaces: ['web'], metadata: { a: 1 } });
      return { send: (client) => atomic(client).create(given, by(policy)), again: CONFLICT };
    });

    repeat(`SES-06 SES-07 attachSurface, ${policy}`, async (userId) => {
      const held = policy === 'reject' ? ['phone'] : ['phone', 'web'];
      await create(context, { userId, attachedSurfaces: held });
      const session = await create(context, { userId });
      return {
        send: (client) => atomic(client).attachSurface(session.id, 'web', { ...by(policy), maxSurfaces: 1 }),
        again: (first) => ({ ...first, changed: false, movedFrom: [] }),
      };
    });
  }

  repeat('SES-16 createOrAdopt', async (userId) => {
    const given = draft(context, { userId, attachedSurfaces: ['web'], metadata: { a: 1 } });
    return {
      send: (client) => atomic(client).createOrAdopt(given, RULES, HOUR),
      again: (first) => ({ ...first, created: false }),
    };
  });

  repeat('SES-16 createOrAdopt that adopts', async (userId) => {
    await create(context, { userId, attachedSurfaces: ['web'] });
    const given = draft(context, { userId, attachedSurfaces: ['web'] });
    return { send: (client) => atomic(client).createOrAdopt(given, RULES, HOUR), again: (first) => first };
  });

  repeat('SES-06 detachSurface', async (userId) => {
    const session = await create(context, { userId, attachedSurfaces: ['phone', 'web'] });
    return {
      send: (client) => atomic(client).detachSurface(session.id, 'phone'),
      again: (first) => ({ ...first, changed: false }),
    };
  });

  repeat('SES-12 mergeMetadata', async (userId) => {
    const session = await create(context, { userId, metadata: { a: 1, b: 2, list: [1] } });
    return {
      send: (client) => atomic(client).mergeMetadata(session.id, { a: null, list: [1, 2], c: {} }, PLENTY),
      again: (first) => ({ ...first, changed: false }),
    };
  });

  repeat('SES-15 update', async (userId) => {
    const session = await create(context, { userId, attachedSurfaces: ['web'] });
    const patch = { state: 'suspended', attachedSurfaces: ['phone'], version: 7 } satisfies Partial<Session>;
    return { send: (client) => atomic(client).update(session.id, patch), again: (first) => first };
  });

  describe.each([
    ['expire', 'SES-08'],
    ['revoke', 'NST-18'],
    ['delete', 'SES-11'],
    ['erase', 'SES-15'],
  ] as const)('%s', (method, row) => {
    const isOver = (first: unknown) => ({ ...(first as object), previousState: 'expired', changed: false });
    const answers = {
      expire: isOver,
      revoke: isOver,
      delete: () => false,
      erase: () => false,
    };
    itMayBeSentTwice(`${row} ${method} of a session with turns`, context, async () => {
      const lane = await TestLane.open(context);
      const { hold, turn } = await lane.run('first');
      await lane.settle(hold, lane.settlement(turn, 0));
      await lane.queue('second');
      return {
        send: async (client: SessionsAdapter): Promise<unknown> => atomic(client)[method](lane.sessionId),
        again: answers[method],
        look: () => lane.snapshot(),
      };
    });
    itMayBeSentTwice(`${row} ${method} of a session whose turn runs`, context, async () => {
      const lane = await TestLane.open(context);
      await lane.run('first');
      return {
        send: async (client: SessionsAdapter): Promise<unknown> => atomic(client)[method](lane.sessionId),
        again: answers[method],
        look: () => lane.snapshot(),
      };
    });
  });

  it('SES-05 a touch that is sent again returns active, and updates the activity only', async () => {
    const { id } = await create(context);
    const first = await context.sessions.touch(id);
    await context.elapse(TICK);
    const second = await context.sessions.touch(id);

    expect([first.previousState, second.previousState]).toEqual(['created', 'active']);
    const { lastActivityAt } = second.session;
    expect(second.session).toEqual({ ...first.session, lastActivityAt, version: 3 });
  });

  it('SES-05 exactly one of two concurrent touches activates the session', async () => {
    for (let n = 0; n < 5; n += 1) {
      const { id } = await create(context);
      const changes = await Promise.all(twoClients().map((client) => atomic(client).touch(id)));

      expect(changes.map(({ previousState }) => previousState).sort()).toEqual(['active', 'created']);
      const stored = await context.sessions.fetchById(id);
      expect(stored?.stateChangedAt).toBe(
        changes.find(({ previousState }) => previousState === 'created')?.session.stateChangedAt,
      );
    }
  });

  it('SES-10 SES-11 returns every session to exactly one of several concurrent sweeps', async () => {
    const old: Session[] = [];
    for (let n = 0; n < 20; n += 1) old.push(await insertIdle(context, 2 * HOUR, { state: 'suspended' }));
    const sweeps = [...twoClients(), ...twoClients()].map((client) => atomic(client).expireStale({ idleMs: HOUR }, 7));
    const expired = (await Promise.all(sweeps)).flat();
    expired.push(...(await context.sessions.expireStale({ idleMs: HOUR }, PLENTY)));
    const ids = idsOf(expired.map(({ session }) => session));

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(idsOf(old)));
    expect(await context.sessions.expireStale({ idleMs: HOUR }, PLENTY)).toEqual([]);
  });

  function twoClients(): SessionsAdapter[] {
    const { clients } = context;
    return [clients[0], clients[clients.length - 1]];
  }
}

function atomic({ sessions }: SessionsAdapter): AtomicSessionStoreAdapter {
  return sessions as AtomicSessionStoreAdapter;
}

/** Sorts by fields other than ids and times, which differ in every run. */
function byContents(a: Session, b: Session): number {
  const contents = ({ attachedSurfaces, metadata }: Session): string => JSON.stringify([attachedSurfaces, metadata]);
  return contents(a) < contents(b) ? -1 : 1;
}
