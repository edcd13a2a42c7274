import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type ClaimedTurn } from '../../ledger/turn.store.js';
import { RULES } from './session-fixtures.js';
import { DESK, LONG_MS, NOTES, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of the data that an export reads, and that nothing remains or returns after an erase (NST-25). */
export function describeRecords(context: ConformanceContext): void {
  describe('records', () => {
    let lane: TestLane;
    let other: TestLane;

    beforeEach(async () => {
      [lane, other] = [await TestLane.open(context), await TestLane.open(context)];
    });

    it('NST-25 returns the steps and signals of one turn only', async () => {
      const { turns } = context.adapter;
      const { hold, turn } = await lane.run('first');
      const odd = { ...lane.step('__proto__', { text: 'ü\u0000', n: [1] }), iteration: 2, intent: 'ánn', key: 'ключ' };
      await turns.saveStep(hold, lane.step('look up', null));
      await turns.saveStep(hold, odd);
      await turns.signal(turn.id, 'approval', { granted: true });
      await turns.signal(turn.id, '__proto__', null);
      const { turn: next, hold: nextHold } = await other.run('next');
      await turns.saveStep(nextHold, other.step('pay', 1));
      await turns.signal(next.id, 'approval', false);

      expect(byName(await turns.steps(turn.id))).toEqual([odd, lane.step('look up', null)]);
      expect(byName(await turns.signals(turn.id))).toEqual([
        { name: '__proto__', payload: null },
        { name: 'approval', payload: { granted: true } },
      ]);
      await lane.settle(hold);
      expect(await turns.steps(turn.id)).toHaveLength(2);
      expect([await turns.steps(context.id()), await turns.signals(context.id())]).toEqual([[], []]);
    });

    it('NST-25 lists the orchestrators that have checkpoints in a session', async () => {
      const { checkpoints } = context.adapter;
      const names = [DESK, 'ánn', '__proto__', 'Desk'];
      for (const orchestrator of names) {
        for (const turnIndex of [0, 1])
          await checkpoints.append({ ...lane.checkpoint(turnIndex), orchestrator }, 'all');
      }
      await checkpoints.append({ ...other.checkpoint(0), orchestrator: 'elsewhere' }, 'all');

      expect((await checkpoints.orchestrators(lane.sessionId)).sort()).toEqual([...names].sort());
      await checkpoints.delete(DESK, lane.sessionId);
      await checkpoints.prune('Desk', lane.sessionId, 1);
      expect((await checkpoints.orchestrators(lane.sessionId)).sort()).toEqual(['Desk', '__proto__', 'ánn'].sort());
      expect(await checkpoints.orchestrators(context.id())).toEqual([]);
    });

    it('NST-25 lists the namespaces in which a session has documents', async () => {
      const { state } = context.adapter;
      const names = ['conformance', 'ánn', '__proto__', 'Conformance', '\u{10FFFF}'];
      for (const namespace of names) {
        for (const key of ['a', '\u{10FFFF}']) {
          await state.set({ namespace, scope: '\u{10FFFF}', key, sessionId: lane.sessionId }, 1);
        }
      }
      await state.set({ namespace: 'elsewhere', scope: '', key: 'a', sessionId: other.sessionId }, 1);

      expect((await state.namespaces(lane.sessionId)).sort()).toEqual([...names].sort());
      await state.reset({ sessionId: lane.sessionId, namespaces: ['ánn'], epoch: context.id() });
      expect(await state.namespaces(lane.sessionId)).not.toContain('ánn');
      expect(await state.namespaces(context.id())).toEqual([]);
    });

    it('NST-25 leaves none of them once the session is erased', async () => {
      const { turn } = await filled();
      await context.sessions.erase(lane.sessionId);

      const { turns, checkpoints, state, events } = context.adapter;
      expect([await turns.steps(turn.id), await turns.signals(turn.id)]).toEqual([[], []]);
      expect([await events.read(turn.id, 0, 10), await events.last(turn.id)]).toEqual([[], 0]);
      expect(await checkpoints.orchestrators(lane.sessionId)).toEqual([]);
      expect(await state.namespaces(lane.sessionId)).toEqual([]);
    });

    it.each<[string, (adapter: SessionsAdapter, claimed: ClaimedTurn) => Promise<unknown>]>([
      ['renew', ({ turns }, { hold }) => turns.renew(hold, LONG_MS)],
      ['settle', (_, { hold, turn }) => lane.settle(hold, lane.settlement(turn, 1), lane.claimRequest())],
      ['retry', ({ turns }, { hold }) => turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 })],
      ['release', ({ turns }, { hold }) => turns.release(hold, 0)],
      ['wait', ({ turns }, { hold }) => turns.wait(hold, { signal: 'go', step: lane.step('go', null) })],
      ['saveStep', ({ turns }, { hold }) => turns.saveStep(hold, lane.step('late', 'late'))],
      ['signal', ({ turns }, { turn }) => turns.signal(turn.id, 'late', 'late')],
      ['cancel', ({ turns }, { turn }) => turns.cancel(turn.id, 'interrupt')],
      ['events', ({ events }, { hold }) => events.append(hold, { ...EVENTS, number: 9 }, LONG_MS)],
      ['accept', () => lane.accept('late')],
      ['accept of a foreign session', () => lane.accept('late', { foreignSession: true })],
      ['accept of a known turn', (_, { turn }) => lane.accept('late', { id: turn.id, foreignSession: true })],
      ['create', () => lane.createSession()],
      ['createOrAdopt', () => context.sessions.createOrAdopt(draft(), RULES, 0)],
      ['touch', () => context.sessions.touch(lane.sessionId)],
      ['attachSurface', () => context.sessions.attachSurface(lane.sessionId, 'late', RULES)],
      ['mergeMetadata', () => context.sessions.mergeMetadata(lane.sessionId, { late: 1 }, 1000)],
      ['update', () => context.sessions.update(lane.sessionId, { metadata: { late: 1 } })],
      ['expire', () => context.sessions.expire(lane.sessionId)],
      ['revoke', () => context.sessions.revoke(lane.sessionId)],
      ['conversation', ({ conversations }) => conversations.append(lane.sessionId, [MESSAGE])],
      ['document', ({ state }) => state.set({ ...NOTES, sessionId: lane.sessionId }, 'late')],
      ['batch', ({ state }) => state.append({ ...NOTES, sessionId: lane.sessionId }, APPEND)],
      ['checkpoint', ({ checkpoints }) => checkpoints.append(lane.checkpoint(0), 'all')],
      ['control', () => lane.control('paused')],
      [
        'control of a foreign session',
        ({ turns }) => turns.control({ sessionId: lane.sessionId, mode: 'paused', foreignSession: true }),
      ],
    ])('NST-25 rejects a late %s for an erased session', async (_, write) => {
      const claimed = await filled();
      await context.sessions.erase(lane.sessionId);

      const error = await write(context.adapter, claimed).catch((reason: unknown) => reason);
      expect(REFUSALS).toContain((error as { code?: string }).code);
      await isGone(claimed);
    });

    it.each<[string, (adapter: SessionsAdapter, claimed: ClaimedTurn) => Promise<unknown>]>([
      ['claim', () => lane.claim()],
      ['clear', ({ turns }) => turns.clear(lane.sessionId)],
      ['access', ({ state }) => state.get({ ...NOTES, sessionId: lane.sessionId }, { ttlMs: LONG_MS })],
      [
        'reset',
        ({ state }) =>
          state.reset({
            sessionId: lane.sessionId,
            namespaces: [NOTES.namespace],
            epoch: context.id(),
            log: { head: NOTES, value: 'late', ifVersion: 0 },
          }),
      ],
    ])('NST-25 writes nothing on a late %s for an erased session', async (_, write) => {
      const claimed = await filled();
      await context.sessions.erase(lane.sessionId);
      // It is rejected or has no effect.
      await write(context.adapter, claimed).catch((error: unknown) => {
        expect(REFUSALS).toContain((error as { code?: string }).code);
      });
      await isGone(claimed);
    });

    it('NST-25 leaves nothing when an erase races with the writes of a running turn', async () => {
      const raced = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const each = await TestLane.open(context);
          return { each, claimed: await each.run('first') };
        }),
      );
      await Promise.all(
        raced.flatMap(({ each, claimed: { hold, turn } }, at) => {
          const { turns, events, state, conversations } = context.adapter;
          const writes = [
            () => turns.saveStep(hold, each.step('late', 1)),
            () => events.append(hold, EVENTS, LONG_MS),
            () => state.set({ ...NOTES, sessionId: each.sessionId }, 'late'),
            () => conversations.append(each.sessionId, [MESSAGE]),
            () => each.accept('second'),
            () => each.settle(hold, each.settlement(turn, 0)),
          ].map((write) => () => write().catch(() => undefined));
          writes.splice(at % writes.length, 0, () => context.sessions.erase(each.sessionId) as Promise<never>);
          return writes.map((write) => write());
        }),
      );
      for (const { each, claimed } of raced) await isGone(claimed, each);
    });

    /** Fills every port of the session, and starts a turn. */
    async function filled(): Promise<ClaimedTurn> {
      const first = await lane.run('first');
      await lane.settle(first.hold, lane.settlement(first.turn, 0));
      const claimed = await lane.run('second');
      await lane.queue('third');
      await context.adapter.turns.saveStep(claimed.hold, lane.step('look up', 1));
      await context.adapter.turns.signal(claimed.turn.id, 'early', 1);
      await context.adapter.events.append(claimed.hold, EVENTS, LONG_MS);
      return claimed;
    }

    async function isGone({ turn }: ClaimedTurn, of = lane): Promise<void> {
      const { turns, events, checkpoints, state } = context.adapter;
      expect(await of.snapshot()).toEqual({ session: null, turns: [], messages: [], checkpoints: [], notes: null });
      expect([await turns.get(turn.id), await turns.steps(turn.id), await turns.signals(turn.id)]).toEqual([
        null,
        [],
        [],
      ]);
      expect(await events.read(turn.id, 0, 10)).toEqual([]);
      expect(await turns.lane(of.sessionId)).toEqual({ sessionId: of.sessionId, mode: 'open', queued: 0 });
      expect(await checkpoints.orchestrators(of.sessionId)).toEqual([]);
      expect(await state.namespaces(of.sessionId)).toEqual([]);
    }

    function draft() {
      return { id: lane.sessionId, userId: context.id(), attachedSurfaces: [], metadata: {} };
    }
  });
}

const REFUSALS = ['TURN_FENCED', 'TURN_NOT_FOUND', 'SESSION_NOT_FOUND', 'SESSION_CONFLICT'];
const EVENTS = { number: 1, events: [{ type: 'delta', data: 'text' }], restart: { type: 'attempt', data: {} } };
const MESSAGE = { id: 'late', role: 'user', content: 'late' } as const;
const APPEND = { id: 'late', entries: [1], initial: 'late' };

function byName<T extends { readonly name: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.name < b.name ? -1 : 1));
}
