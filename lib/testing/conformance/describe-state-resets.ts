import { CONVERSATION_NAMESPACE } from '../../ledger/namespaces.js';
import { HEAD } from '../../conversation/conversation-head.js';
import { StateResetError } from '../../ledger/state-reset.error.js';
import {
  type StateChange,
  type StateCleared,
  type StateDocument,
  type StateName,
  type StateReset,
} from '../../ledger/state.store.js';
import { type ClaimedTurn, type TurnSettlement } from '../../ledger/turn.store.js';
import { appendOf, written } from './document-fixtures.js';
import { TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of StateStore.reset and its effect on turns (STA-23). */
export function describeStateResets(context: ConformanceContext): void {
  describe('resets of state', () => {
    let lane: TestLane;
    /** The namespaces of two state modules that no other test uses. */
    let one: StateName;
    let two: StateName;
    beforeEach(async () => {
      lane = await TestLane.open(context);
      one = { namespace: context.id(), scope: 'a', key: 'x' };
      two = { namespace: context.id(), scope: 'a', key: 'x' };
    });

    const { id } = context;
    const put = (name: StateName, sessionId = lane.sessionId): Promise<StateDocument | null> =>
      context.adapter.state.set({ ...name, sessionId }, 'before');
    const value = async (name: StateName, sessionId = lane.sessionId): Promise<unknown> =>
      (await context.adapter.state.get({ ...name, sessionId }))?.value;
    const reset = (changes: Partial<StateReset> = {}): Promise<StateCleared | null> =>
      context.adapter.state.reset({ sessionId: lane.sessionId, namespaces: [one.namespace], epoch: id(), ...changes });
    const resetLog = (ifVersion = 0, epoch = id()): Promise<StateCleared | null> =>
      reset({ namespaces: [CONVERSATION_NAMESPACE], epoch, log: { head: HEAD, value: { log: epoch }, ifVersion } });
    const append = (name: StateName): StateChange => ({
      name,
      append: appendOf(context, ['late'], { initial: 'new' }),
    });
    const says = (text: string): Pick<TurnSettlement, 'messages'> => ({
      messages: [{ id: id(), role: 'assistant', content: text }],
    });
    const said = async (): Promise<unknown[]> => (await lane.messages()).map(({ content }) => content);
    const settleNew = async (changes: Partial<TurnSettlement>): Promise<void> => {
      await lane.settle((await lane.run('another')).hold, changes);
    };

    it('STA-23 clears the given namespaces of the session, and nothing else', async () => {
      const other = await TestLane.open(context);
      const more = { ...one, scope: 'b', key: 'y' };
      for (const name of [one, more, two]) await put(name);
      await put(one, other.sessionId);
      expect(await reset()).toEqual({ documents: { [one.namespace]: 2 }, messages: 0 });
      expect([await value(one), await value(more), await value(two)]).toEqual([undefined, undefined, 'before']);
      expect(await value(one, other.sessionId)).toBe('before');
      expect(await context.adapter.state.count({ namespace: one.namespace, sessionId: lane.sessionId })).toBe(0);
    });

    it('STA-23 clears several namespaces in one call, and counts the documents of each', async () => {
      for (const name of [one, two, { ...two, key: 'y' }]) await put(name);
      const nobody = id();
      expect(await reset({ namespaces: [two.namespace, one.namespace, nobody] })).toEqual({
        documents: { [one.namespace]: 1, [two.namespace]: 2, [nobody]: 0 },
        messages: 0,
      });
    });

    it('STA-23 clears expired documents without counting them', async () => {
      await context.adapter.state.set({ ...one, sessionId: lane.sessionId }, 1, { ttlMs: 20 });
      await context.elapse(20);
      expect(await reset()).toEqual({ documents: { [one.namespace]: 0 }, messages: 0 });
    });

    it('STA-03 STA-23 writes nothing for an unknown session', async () => {
      const sessionId = id();
      const epoch = id();
      const log = { head: HEAD, value: {}, ifVersion: 0 };
      expect(await reset({ sessionId, namespaces: [CONVERSATION_NAMESPACE], epoch, log })).toEqual({
        documents: { [CONVERSATION_NAMESPACE]: 0 },
        messages: 0,
      });
      expect(await value(HEAD, sessionId)).toBeUndefined();
    });

    it('STA-23 stores no epoch and no head for a session without turns', async () => {
      for (const mode of ['draining', 'open'] as const) await lane.control(mode);
      await resetLog();
      expect(await value(HEAD)).toBeUndefined();
      expect((await lane.run('hello')).epochs).toEqual({});
    });

    it('STA-23 keeps the data that a session writes after it', async () => {
      await put(one);
      await reset();
      await put(one);
      expect(await context.adapter.state.get({ ...one, sessionId: lane.sessionId })).toEqual(written('before'));
    });

    describe('of the message log', () => {
      it('STA-23 removes messages and heads, keeps the new head, and restarts at the first position', async () => {
        const turn = await lane.run('hello');
        await lane.settle(turn.hold, lane.settlement(turn.turn, 0));
        const { version = NaN } = (await put(HEAD)) ?? {};
        await put({ ...HEAD, key: 'earlier' });
        const epoch = id();
        expect(await resetLog(version, epoch)).toEqual({ documents: { [CONVERSATION_NAMESPACE]: 2 }, messages: 2 });
        expect(await said()).toEqual([]);
        expect(await context.adapter.conversations.window(lane.sessionId, 10)).toEqual([]);
        expect(await context.adapter.conversations.sessions(lane.sessionId.slice(0, -1), 1)).not.toContain(
          lane.sessionId,
        );
        expect(await value(HEAD)).toEqual({ log: epoch });
        expect(await value({ ...HEAD, key: 'earlier' })).toBeUndefined();

        await settleNew(says('new'));
        expect(await lane.messages()).toMatchObject([{ position: 1, content: 'new' }]);
        expect((await context.adapter.state.get({ ...HEAD, sessionId: lane.sessionId }))?.version).toBeGreaterThan(
          version,
        );
      });

      it('STA-23 does nothing when the head has another version', async () => {
        const turn = await lane.run('hello');
        await lane.settle(turn.hold, says('stays'));
        expect(await resetLog(1)).toBeNull();
        const { version = NaN } = (await put(HEAD)) ?? {};
        expect(await resetLog(0)).toBeNull();
        expect(await resetLog(version + 1)).toBeNull();
        expect(await said()).toEqual(['stays']);
        expect(await value(HEAD)).toBe('before');
        await settleNew(says('and goes on'));
        expect(await said()).toEqual(['stays', 'and goes on']);
      });

      it('STA-23 keeps the log when another namespace is reset', async () => {
        await lane.settle((await lane.run('hello')).hold, says('stays'));
        await reset();
        expect(await said()).toEqual(['stays']);
      });

      it('STA-23 clears messages that were added without a turn', async () => {
        await context.adapter.conversations.append(lane.sessionId, [{ id: id(), role: 'user', content: 'imported' }]);
        expect(await resetLog()).toMatchObject({ messages: 1 });
        expect(await said()).toEqual([]);
      });
    });

    describe('during a turn (known failure: the turn restored cleared data)', () => {
      const refused = async (settling: Promise<unknown>, ...namespaces: string[]): Promise<void> => {
        const error: unknown = await settling.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(StateResetError);
        expect({ ...(error as StateResetError) }).toMatchObject({ sessionId: lane.sessionId });
        expect([...(error as StateResetError).namespaces].sort()).toEqual([...namespaces].sort());
      };

      it('STA-23 rejects writes of the turn to the namespace, changes nothing, and lets the turn run on', async () => {
        const { hold, turn } = await lane.run('hello');
        await put(two);
        await reset();
        const before = await lane.snapshot();
        const changes = { ...lane.settlement(turn, 0), stateChanges: [append(one), append(two)] };
        await refused(lane.settle(hold, changes), one.namespace);
        expect(await lane.snapshot()).toEqual(before);
        expect([await value(one), await value(two)]).toEqual([undefined, 'before']);

        const settled = await lane.settle(hold, { ...changes, stateChanges: [append(two)] });
        expect(settled.turn.status).toBe('awaiting-input');
        expect(await said()).toEqual(['hello', 'answer 0']);
        expect((await context.adapter.state.get({ ...two, sessionId: lane.sessionId }))?.batches).toHaveLength(1);
      });

      it('STA-23 rejects only its messages once the log was reset', async () => {
        const { hold } = await lane.run('hello');
        await resetLog();
        await refused(lane.settle(hold, { ...says('late'), stateChanges: [append(one)] }), CONVERSATION_NAMESPACE);
        await lane.settle(hold, { stateChanges: [append(one)] });
        expect(await said()).toEqual([]);
        expect(await value(one)).toBe('new');
      });

      it('STA-23 reports every namespace that was reset', async () => {
        const { hold } = await lane.run('hello');
        await resetLog();
        await reset({ namespaces: [one.namespace, two.namespace] });
        const changes = { ...says('late'), stateChanges: [append(one), append(two), append({ ...one, key: 'y' })] };
        await refused(lane.settle(hold, changes), one.namespace, two.namespace, CONVERSATION_NAMESPACE);
        await lane.settle(hold);
      });

      it('STA-23 lets the turn settle if it writes nothing to the namespace', async () => {
        const { hold } = await lane.run('hello');
        await reset();
        expect((await lane.settle(hold, { ...says('stays'), stateChanges: [append(two)] })).turn.status).toBe(
          'awaiting-input',
        );
        expect(await said()).toEqual(['stays']);
      });

      it('STA-23 distinguishes a settle that is sent twice from one that is rejected', async () => {
        const { hold } = await lane.run('hello');
        const settled = await lane.settle(hold, { stateChanges: [append(one)] });
        await reset();
        expect((await lane.settle(hold, { stateChanges: [append(one)] })).turn).toEqual(settled.turn);
        expect(await value(one)).toBeUndefined();
      });

      it.each(['retry', 'release', 'wait'] as const)(
        'STA-23 uses the epochs of the first claim of the turn, after %s',
        async (way) => {
          const { hold } = await lane.run('hello');
          await reset();
          await lane.putBack(
            ({ retry: 'waits for its retry', release: 'was released', wait: 'resumes after a signal' } as const)[way],
            hold,
            0,
          );
          const again = await lane.take();
          await refused(lane.settle(again.hold, { stateChanges: [append(one)] }), one.namespace);
        },
      );

      it('STA-23 uses the epochs of the first claim of a turn that was queued when the state was reset', async () => {
        await lane.queue('hello');
        await reset();
        const { hold } = await lane.take();
        await lane.settle(hold, { stateChanges: [append(one)] });
        expect(await value(one)).toBe('new');
      });

      it('STA-23 rejects the write of the turn, but not of the turn that its settle claims', async () => {
        const first = await lane.run('first');
        await lane.queue('second');
        await reset();
        const { next } = await lane.settle(first.hold, {}, lane.claimRequest());
        expect(next).not.toBeNull();
        await lane.settle(next!.hold, { stateChanges: [append(one)] });
        expect(await value(one)).toBe('new');
      });

      it('STA-23 keeps no message of a waiting turn that is interrupted after the log was reset', async () => {
        for (const isReset of [false, true]) {
          const { hold } = await lane.run('hello');
          await context.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
          if (isReset) await resetLog();
          await context.adapter.turns.cancel(hold.turnId, 'interrupt');
          expect(await said()).toEqual(isReset ? [] : ['hello']);
        }
      });

      it('STA-23 returns the epochs of the session with each claim', async () => {
        const first = await lane.run('first');
        expect(first.epochs).toEqual({});
        const [epochOne, epochLog] = [id(), id()];
        await reset({ epoch: id() });
        await reset({ epoch: epochOne });
        await resetLog(0, epochLog);
        await lane.queue('second');
        const { next } = await lane.settle(first.hold, {}, lane.claimRequest());
        expect(next?.epochs).toEqual({ [one.namespace]: epochOne, [CONVERSATION_NAMESPACE]: epochLog });
        await lane.settle(next!.hold);
        const third: ClaimedTurn = await lane.run('third');
        expect(third.epochs).toEqual(next?.epochs);
      });
    });

    describe('races', () => {
      it('STA-23 either clears the documents that a turn settles, or rejects them', async () => {
        for (let round = 0; round < 15; round += 1) {
          const { hold } = await lane.run(`round ${round}`);
          const [settling, clearing] = await Promise.allSettled([
            lane.settle(hold, { stateChanges: [append(one)] }),
            context.clients
              .at(-1)!
              .state.reset({ sessionId: lane.sessionId, namespaces: [one.namespace], epoch: id() }),
          ]);
          expect(clearing.status).toBe('fulfilled');
          expect(await value(one)).toBeUndefined();
          if (settling.status === 'rejected') {
            expect(settling.reason).toBeInstanceOf(StateResetError);
            await lane.settle(hold);
          }
        }
      });

      it('STA-23 either clears the messages that a turn settles, or rejects them', async () => {
        for (let round = 0; round < 15; round += 1) {
          const { hold } = await lane.run(`round ${round}`);
          const head = await context.adapter.state.get({ ...HEAD, sessionId: lane.sessionId });
          const [settling, clearing] = await Promise.allSettled([
            lane.settle(hold, says('a')),
            resetLog(head?.version ?? 0),
          ]);
          expect(clearing).toMatchObject({ status: 'fulfilled', value: expect.anything() as unknown });
          expect(await said()).toEqual([]);
          if (settling.status === 'rejected') await lane.settle(hold);
        }
      });

      it('STA-23 completes two concurrent resets among many writes, and counts no document twice', async () => {
        const writers = 12;
        const { state } = context.adapter;
        const place = (index: number): StateName => ({ ...one, key: `k${index}` });
        const results = await Promise.all([
          ...Array.from({ length: writers }, (_, index) =>
            context.clients[index % context.clients.length].state
              .set({ ...place(index), sessionId: lane.sessionId }, index)
              .then(() => 0),
          ),
          ...context.clients.map(async (client) => {
            const cleared = await client.state.reset({
              sessionId: lane.sessionId,
              namespaces: [one.namespace],
              epoch: id(),
            });
            return cleared?.documents[one.namespace] ?? -1;
          }),
        ]);
        const cleared = results.reduce((sum, count) => sum + count, 0);
        const left = await state.count({ namespace: one.namespace, sessionId: lane.sessionId });
        expect(cleared + left).toBe(writers);
      });
    });
  });
}
