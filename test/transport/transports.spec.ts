import 'reflect-metadata';
import { jest } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import {
  defineStepPlan,
  memoryAdapter,
  OrchestrationEvents,
  OrchestrationStateManager,
  type Session,
  SessionsModule,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { Echo } from '../support/application.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { type Seen } from './handlers.js';
import { type Call, type Reply, type Running, TRANSPORTS } from './transports.js';

const SALES = defineStepPlan({
  agent: 'sales',
  steps: [{ name: 'booking', isDefault: true, sequence: ['search', 'book', 'pay'] }],
});
const UNKNOWN = 'f'.repeat(32);

describe.each(TRANSPORTS)('guards and decorators in $name', ({ name, start, sessionAt, principal }) => {
  const calls: string[] = [];
  const errors: string[] = [];
  let now = Date.parse('2026-11-21T08:00:00.000Z');
  let running: Running;
  let sessions: SessionStore;

  beforeAll(async () => {
    const adapter = recordingAdapter(memoryAdapter({ clock: () => now }), calls);
    running = await start({
      imports: [
        // No background query reaches the store.
        SessionsModule.forRoot({
          adapter,
          sweep: false,
          turns: { reconcileMs: 3_600_000 },
          ...(principal ? { principal } : {}),
        }),
        SessionsModule.forFeature([Echo, SALES]),
      ],
    });
    running.app.useLogger({ log: () => {}, warn: () => {}, error: (text: unknown) => void errors.push(String(text)) });
    sessions = running.app.get(SessionStore);
  });

  afterAll(() => running.close());

  const ask = (handler: string, call: Call): Promise<Reply> => running.ask(handler, call);
  const asAnn = (handler: string, call: Call = {}): Promise<Reply> => ask(handler, { user: 'ann', ...call });
  const annsSession = async (): Promise<string> => (await sessions.create({ userId: 'ann' })).id;

  describe('the owner of the session', () => {
    it('NST-10 NST-13 injects the touched session for its owner', async () => {
      const { id } = await sessions.create({ userId: 'ann', metadata: { topic: 'refund' } });

      const reply = await asAnn('chat', { sessionId: id });

      expect(reply).toEqual({ ok: { id, session: await sessions.get(id) } });
      expect(seenIn(reply).session).toMatchObject({ state: 'active', metadata: { topic: 'refund' } });
    });

    it('NST-11 NST-15 answers 401 without a user, before it queries the store', async () => {
      const sessionId = await annsSession();

      const { reply, asked } = await watched(() => ask('chat', { sessionId }));

      expect(reply).toEqual({
        error: { statusCode: 401, code: 'UNAUTHENTICATED', message: 'The request has no user. Sign in first.' },
      });
      expect(asked).toEqual([]);
    });

    it('NST-11 NST-15 returns the same error for another owner’s session and an unknown one', async () => {
      const { id } = await sessions.create({ userId: 'bob' });

      const foreign = await watched(() => asAnn('chat', { sessionId: id }));
      const unknown = await watched(() => asAnn('chat', { sessionId: UNKNOWN }));

      expect(unknown).toEqual({
        reply: {
          error: {
            statusCode: 404,
            code: 'SESSION_NOT_FOUND',
            message: `Session not found: ${UNKNOWN}`,
            sessionId: UNKNOWN,
          },
        },
        asked: ['sessions.fetchById'],
      });
      expect(JSON.parse(JSON.stringify(foreign).replaceAll(id, UNKNOWN))).toEqual(unknown);
      expect(await sessions.get(id)).toMatchObject({ state: 'created', version: 1 });
    });

    it('FIX-90 does not inject a session that got the id of the one that belongs to the user', async () => {
      const sessionId = await annsSession();
      const touch = sessions.touch.bind(sessions);
      const replaced = jest.spyOn(sessions, 'touch').mockImplementationOnce(async (id) => {
        await sessions.delete(id);
        await sessions.create({ id, userId: 'bob' });
        return touch(id);
      });

      const reply = await asAnn('chat', { sessionId });

      replaced.mockRestore();
      expect(reply).toMatchObject({ error: { statusCode: 404, code: 'SESSION_NOT_FOUND' } });
    });

    it('FIX-90 does not touch a session that got the id of the one that the guard has read', async () => {
      const sessionId = await annsSession();
      const get = sessions.get.bind(sessions);
      const replaced = jest.spyOn(sessions, 'get').mockImplementationOnce(async (id) => {
        const session = await get(id);
        await sessions.delete(id);
        await sessions.create({ id, userId: 'bob' });
        return session;
      });

      const reply = await asAnn('chat', { sessionId });

      replaced.mockRestore();
      expect(reply).toMatchObject({ error: { statusCode: 404, code: 'SESSION_NOT_FOUND' } });
      expect(await sessions.get(sessionId)).toMatchObject({ userId: 'bob', state: 'created', version: 1 });
    });

    it('NST-11 allows anonymous use with @AllowAnonymousSession, but no use by another user', async () => {
      const { id } = await sessions.create({ userId: 'bob' });

      expect(await ask('anonymous', { sessionId: id })).toMatchObject({ ok: { id } });
      expect(await asAnn('anonymous', { sessionId: id })).toMatchObject({ error: { code: 'SESSION_NOT_FOUND' } });
    });
  });

  describe('the state of the session', () => {
    it('NST-12 rejects an expired session and does not change it', async () => {
      const expired = await sessions.expire(await annsSession());

      const reply = await asAnn('chat', { sessionId: expired.id });

      expect(reply).toMatchObject({ error: { statusCode: 410, code: 'SESSION_STATE', sessionId: expired.id } });
      expect(await sessions.get(expired.id)).toEqual(expired);
    });

    it('NST-12 resumes a suspended session', async () => {
      const sessionId = await annsSession();
      await sessions.touch(sessionId);
      now += 3_600_001;
      await sessions.sweepStale();
      expect(await sessions.get(sessionId)).toMatchObject({ state: 'suspended' });

      const reply = await asAnn('chat', { sessionId });

      const lastActivityAt = new Date(now).toISOString();
      expect(reply).toMatchObject({ ok: { session: { state: 'active', lastActivityAt } } });
    });
  });

  describe('the source of the id', () => {
    it('NST-10 reads the id from a field of the data', async () => {
      const sessionId = await annsSession();

      expect(await asAnn('named', { data: { talk: sessionId } })).toMatchObject({
        ok: { id: sessionId, session: { state: 'created' } },
      });
      expect(await asAnn('named')).toMatchObject({
        error: { message: expect.stringContaining('data:talk') as string },
      });
    });

    it('NST-10 NST-15 names the expected source if the id is missing', async () => {
      const { reply, asked } = await watched(() => asAnn('chat'));

      expect(reply).toEqual({
        error: {
          statusCode: 400,
          code: 'SESSION_ID_MISSING',
          message: `sessionId is missing. Expected at: ${sessionAt}.`,
        },
      });
      expect(asked).toEqual([]);
    });

    it('NST-10 allows a missing optional session, and rejects a foreign one', async () => {
      const { id } = await sessions.create({ userId: 'bob' });

      expect(await asAnn('optional')).toEqual({ ok: { id: null, session: null } });
      expect(await asAnn('optional', { sessionId: id })).toMatchObject({ error: { code: 'SESSION_NOT_FOUND' } });
    });

    it('NST-10 ignores handlers without @UseSession', async () => {
      expect(await ask('open', { sessionId: await annsSession() })).toEqual({ ok: { open: true } });
    });

    it.each(['*', '../../etc/passwd', '__proto__', "' OR 1=1 --", 'a'.repeat(201)])(
      'NST-17 rejects %s before it queries the store',
      async (talk) => {
        const { reply, asked } = await watched(() => asAnn('named', { data: { talk } }));

        expect(reply).toMatchObject({ error: { statusCode: 400, code: 'INVALID_INPUT' } });
        expect(asked).toEqual([]);
      },
    );

    it('NST-10 NST-15 logs a source that the transport lacks, and returns a generic error', async () => {
      errors.length = 0;

      const reply = await asAnn('nowhere', { sessionId: await annsSession() });

      expect(reply).toEqual({
        error: { statusCode: 500, code: 'CONFIGURATION', message: 'Internal server error' },
      });
      expect(errors.join()).toMatch(/\.nowhere reads an id from cookie:sid, which .* does not have\. Allowed: /);
      const cure = 'Cookies require a parser: app.use(cookieParser())';
      expect(errors.join().includes(cure)).toBe(['HTTP', 'GraphQL'].includes(name));
    });

    it('NST-10 keeps the sessions of two concurrent messages apart', async () => {
      const talks = [await annsSession(), await annsSession()];

      const replies = await Promise.all(talks.map((talk) => asAnn('pair', { data: { talk } })));

      // Replies over plain WebSockets do not identify their message.
      expect(replies.map((reply) => seenIn(reply).id).sort()).toEqual([...talks].sort());
      expect(replies.map((reply) => seenIn(reply).session?.id).sort()).toEqual([...talks].sort());
    });
  });

  describe('other parameters of handlers', () => {
    it('NST-13 injects a turn of the session with @CurrentTurn, and answers 404 for others', async () => {
      const [own, other] = [await annsSession(), await annsSession()];
      const turns = running.app.get(TurnService);
      const mine = await turns.execute('echo', 'hello', { sessionId: own });
      const theirs = await turns.execute('echo', 'hello', { sessionId: other });

      expect(await asAnn('turn', { sessionId: own, turnId: mine.id })).toEqual({
        ok: { id: mine.id, status: 'awaiting-input' },
      });
      const foreign = await watched(() => asAnn('turn', { sessionId: own, turnId: theirs.id }));
      const unknown = await watched(() => asAnn('turn', { sessionId: own, turnId: UNKNOWN }));
      expect(unknown.reply).toEqual({
        error: {
          statusCode: 404,
          code: 'TURN_NOT_FOUND',
          message: `Turn not found: ${UNKNOWN}. Check the id. Old settled turns may have been deleted.`,
          turnId: UNKNOWN,
        },
      });
      expect(JSON.parse(JSON.stringify(foreign).replaceAll(theirs.id, UNKNOWN))).toEqual(unknown);
    });

    it('NST-13 rejects a malformed id with @CurrentTurn, and its use without a session', async () => {
      const sessionId = await annsSession();

      expect(await asAnn('turn', { sessionId, turnId: '*' })).toMatchObject({ error: { code: 'INVALID_INPUT' } });
      errors.length = 0;
      const reply = await asAnn('turnOfNobody', { data: { turnId: UNKNOWN } });
      expect(reply).toMatchObject({ error: { statusCode: 500, code: 'CONFIGURATION' } });
      expect(errors.join()).toContain(
        '.turnOfNobody asks for @CurrentTurn(), but the request has no session. Add a required @UseSession() and ' +
          'SessionGuard, for example @UseGuards(AuthGuard, SessionGuard).',
      );
    });

    it('NST-13 injects the stored plan state with @CurrentOrchestrationState, or nothing', async () => {
      const sessionId = await annsSession();

      expect(await asAnn('state', { sessionId })).toEqual({ ok: { state: null } });
      await asAnn('search', { sessionId });

      expect(await asAnn('state', { sessionId })).toMatchObject({
        ok: { state: { sessionId, activeStep: 'booking', sequenceIndex: 1 } },
      });
    });
  });

  describe('tools', () => {
    it('NST-14 NST-15 runs a handler only while the plan allows its tool, and records its use', async () => {
      const sessionId = await annsSession();

      expect(await asAnn('book', { sessionId })).toEqual({
        error: {
          statusCode: 403,
          code: 'TOOL_NOT_ALLOWED',
          message: 'The tool book is not allowed in step booking. Allowed now: search.',
          sessionId,
        },
      });
      expect(await usesIn(sessionId)).toEqual([]);

      expect(await asAnn('search', { sessionId })).toEqual({ ok: { found: 3 } });
      expect(await asAnn('book', { sessionId })).toEqual({ ok: { booked: true } });
      expect(await usesIn(sessionId)).toEqual(['search succeeded', 'book succeeded']);
      expect(await asAnn('search', { sessionId })).toMatchObject({ error: { code: 'TOOL_NOT_ALLOWED' } });
    });

    it('NST-14 records a failed use without advancing the plan', async () => {
      const sessionId = await annsSession();

      expect(await asAnn('searchInVain', { sessionId })).toHaveProperty('error');

      expect(await usesIn(sessionId)).toEqual(['search failed']);
      expect(await asAnn('book', { sessionId })).toMatchObject({ error: { code: 'TOOL_NOT_ALLOWED' } });
      expect(await asAnn('search', { sessionId })).toEqual({ ok: { found: 3 } });
    });

    it('FIX-21 runs one of two parallel requests if the plan allows one, and rejects the other', async () => {
      const sessionId = await annsSession();
      const violations: string[] = [];
      const subscription = running.app.get(OrchestrationEvents).stream.subscribe((event) => {
        if (event.type === 'tool-violated') violations.push(event.tool);
      });

      const together = [asAnn('searchTogether', { sessionId }), asAnn('searchTogether', { sessionId })];
      // Exceptions of Socket.IO do not identify their message, so both calls may receive the rejection.
      expect(await Promise.all(together)).toContainEqual(
        expect.objectContaining({ error: expect.objectContaining({ code: 'TOOL_NOT_ALLOWED' }) as object }),
      );
      await eventually(async () => (await usesIn(sessionId)).join() === 'search succeeded');
      subscription.unsubscribe();

      expect(await running.app.get(OrchestrationStateManager).getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
      expect(violations).toEqual(['search']);
    });
  });

  async function usesIn(sessionId: string): Promise<string[]> {
    const state = await running.app.get(OrchestrationStateManager).getState(sessionId);
    return state?.toolHistory.map(({ tool, outcome }) => `${tool} ${outcome}`) ?? [];
  }

  /** Returns the reply that a client receives, and the store calls that it caused. */
  async function watched(send: () => Promise<Reply>): Promise<{ reply: Reply; asked: string[] }> {
    calls.length = 0;
    const reply = await send();
    return { reply, asked: calls.filter((call) => call.startsWith('sessions.') || call === 'turns.get') };
  }
});

function seenIn(reply: Reply): { readonly id: string | null; readonly session: Session | null } {
  return (reply as { ok: Seen }).ok;
}
