import {
  defineOrchestrator,
  END_TURN,
  HandlerError,
  reply,
  type SessionsError,
  SessionStateService,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

type Answer = Parameters<typeof defineOrchestrator>[0]['intents'][string];

const impatient = { retry: { backoff: { type: 'fixed' as const, delayMs: 1 } } };

describe.each(LIVE_STORES)('the identity of steps over $name', ({ open }) => {
  describe('FIX-01 a step inside a call belongs to that call', () => {
    it('FIX-01 replays a step, and the calls after it keep their own steps inside', async () => {
      const paid: string[] = [];
      const { app, say } = await startDesk(open, async (turn) => {
        const refund = (order: string) =>
          turn.step(`refund ${order}`, async () => {
            if (turn.attempt === 1 && order === '2') throw new Error('crash');
            return turn.step('pay', () => (paid.push(order), `receipt of ${order}`));
          });
        return reply([await refund('1'), await refund('2')].join(', '));
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'receipt of 1, receipt of 2' });
      expect(paid).toEqual(['1', '2']);
    });

    it('FIX-01 replays a tool call, and the calls after it keep their own steps inside', async () => {
      const paid: string[] = [];
      const { app, say } = await startDesk(open, async (turn) => {
        const refund = (order: string) =>
          turn.tools.use('refund', `call ${order}`, async () => {
            if (turn.attempt === 1 && order === '2') throw new Error('crash');
            return turn.step('pay', () => (paid.push(order), `receipt of ${order}`));
          });
        return reply([await refund('1'), await refund('2')].join(', '));
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'receipt of 1, receipt of 2' });
      expect(paid).toEqual(['1', '2']);
    });

    it('FIX-01 gives parallel tool calls their own steps, whichever is first, after a crash at each stored step', async () => {
      for (const crashAfter of [1, 2, 3]) {
        const paid: string[] = [];
        let stored = 0;
        const { app, say } = await startDesk(open, async (turn) => {
          const order = turn.attempt === 1 ? ['a', 'b', 'c'] : ['c', 'a', 'b'];
          const done = order.map((item) =>
            turn.tools.use('refund', item, async () => {
              const receipt = await turn.step('pay', () => (paid.push(item), `paid ${item}`));
              stored += 1;
              if (turn.attempt === 1 && stored >= crashAfter) throw new Error('crash');
              return receipt;
            }),
          );
          await Promise.allSettled(done);
          const receipts = await Promise.all(done);
          return reply(receipts.sort().join(', '));
        });
        expect(await say(await app.session())).toMatchObject({ reply: 'paid a, paid b, paid c' });
        expect(paid.sort()).toEqual(['a', 'b', 'c']);
      }
    });

    it('FIX-01 gives a call that runs again in the same attempt the steps that it stored before', async () => {
      const paid: string[] = [];
      let tries = 0;
      const { app, say } = await startDesk(open, async (turn) => {
        const refund = () =>
          turn.tools.use('refund', 'call', async () => {
            const receipt = await turn.step('pay', () => (paid.push('order'), `receipt ${paid.length}`));
            tries += 1;
            if (tries === 1) throw new Error('after the payment');
            return receipt;
          });
        return reply(await refund().catch(refund));
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'receipt 1' });
      expect(paid).toEqual(['order']);
    });
  });

  describe('FIX-02 a key identifies a step whatever the timing', () => {
    it('FIX-02 gives parallel chains their own results when their order changes in a retry', async () => {
      const paid: string[] = [];
      const { app, say } = await startDesk(open, async (turn) => {
        const items = turn.attempt === 1 ? ['a', 'b'] : ['b', 'a'];
        const chain = async (item: string): Promise<string> => {
          const loaded = await turn.step('load', () => `loaded ${item}`, { key: item });
          return turn.step('pay', () => (paid.push(item), `${loaded}, paid ${item}`), { key: item });
        };
        const done = await Promise.all(items.map(async (item) => `${item}: ${await chain(item)}`));
        if (turn.attempt === 1) throw new Error('once more');
        return reply(done.sort().join('; '));
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'a: loaded a, paid a; b: loaded b, paid b' });
      expect(paid.sort()).toEqual(['a', 'b']);
    });

    it('FIX-02 refuses parallel steps with one name and no key from the first attempt on', async () => {
      const problems: unknown[] = [];
      const { app, say } = await startDesk(open, async (turn) => {
        const done = await Promise.allSettled([1, 2, 3].map((n) => turn.step('load', () => n)));
        problems.push(...done.map((run) => (run.status === 'rejected' ? run.reason : run.value) as unknown));
        // The scope is parallel now: the order of arrival tells no steps apart.
        await turn.step('pay', () => 1);
        await turn.step('pay', () => 2);
      });
      const error = await rejection(say(await app.session()), TurnFailedError);
      expect(error.failure).toMatchObject({ name: 'HandlerError', code: 'STEP_KEY_REQUIRED' });
      expect(error.failure?.message).toContain('turn.step("pay", work, { key: ');
      expect(problems).toEqual([1, expect.any(HandlerError), expect.any(HandlerError)]);
      expect(await app.turns.get(error.turnId)).toMatchObject({ failures: 1 });
    });

    it('FIX-02 needs no key for steps that follow one another, for parallel names, and in other scopes', async () => {
      const { app, say } = await startDesk(open, async (turn) => {
        const ids = ['a', 'b'];
        const seen: unknown[] = await Promise.all(ids.map((id) => turn.step(`load ${id}`, () => id)));
        for (const id of ids) seen.push(await turn.step('sequential', () => id));
        seen.push(
          ...(await Promise.all(ids.map((id) => turn.step(`outer ${id}`, () => turn.step('inner', () => `in ${id}`))))),
        );
        if (turn.attempt === 1) throw new Error('once more');
        return reply(seen.join(', '));
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'a, b, a, b, in a, in b' });
    });

    it('FIX-02 runs a step once for one name and key, also at the same time', async () => {
      let runs = 0;
      const { app, say } = await startDesk(open, async (turn) => {
        const load = () => turn.step('load', () => (runs += 1), { key: 'order 7' });
        const seen = [...(await Promise.all([load(), load()])), await load()];
        if (turn.attempt === 1) throw new Error('once more');
        return reply([...seen, await load()].join(', '));
      });
      expect(await say(await app.session())).toMatchObject({ reply: '1, 1, 1, 1' });
      expect(runs).toBe(1);
    });

    it.each([[''], ['x'.repeat(257)], [7], [null]])('FIX-02 refuses the key %p', async (key) => {
      const { app, say } = await startDesk(open, (turn) => turn.step('load', () => 1, { key: key as string }));
      const error = await rejection(say(await app.session()), TurnFailedError);
      expect(error.failure).toMatchObject({ code: 'INVALID_INPUT', details: { path: 'step options.key' } });
    });
  });

  describe('FIX-08 every attempt takes the same intents', () => {
    it.each(['step', 'event', 'wait', 'tool'] as const)(
      'FIX-08 keeps the decision of a route once a %s rests on it',
      async (what) => {
        const seen: string[] = [];
        let routed = 0;
        const act: Answer = async (turn) => {
          if (what === 'step') await turn.step('pay', () => seen.push('effect'));
          if (what === 'tool') await turn.tools.use('pay', 'call', () => seen.push('effect'));
          if (what === 'event') await turn.emit({ type: 'delta', data: 'One moment' });
          if (what === 'wait') await turn.waitFor('go', { timeoutMs: 1, onTimeout: () => null });
          seen.push(turn.attempt > 1 ? 'done' : 'first');
          if (turn.attempt === 1 && what !== 'wait') await crashOnceStored(app, turn);
          return reply('as decided');
        };
        const desk = defineOrchestrator({
          name: 'desk',
          route: async (turn) => {
            routed += 1;
            turn.usage.add({ promptTokens: 1, completionTokens: 1 });
            turn.modules.tools.set('router', 'asked', routed);
            return routed === 1 ? 'act' : 'other';
          },
          intents: { act, other: () => reply('another intent') },
        });
        const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
        const sessionId = await app.session();
        const { id, reply: said } = await app.handle(desk).execute('hi', { sessionId });
        expect({ said, routed }).toEqual({ said: 'as decided', routed: 1 });
        // The usage and the tool entries of the route are kept although it does not run again.
        expect((await app.turns.get(id))?.report).toMatchObject({ usage: { totalTokens: 2 } });
        const { tools } = app.app.get(SessionStateService, { strict: false });
        expect(await tools.get(sessionId, 'router', 'asked')).toMatchObject({ value: 1 });
      },
    );

    it('FIX-08 stores nothing for a turn that stores nothing before it settles', async () => {
      const desk = defineOrchestrator({
        name: 'desk',
        route: () => 'act',
        intents: { act: () => reply('done'), other: () => reply('other') },
      });
      const app = await startApplication({ adapter: open(), orchestrators: [desk] });
      const { id } = await app.handle(desk).execute('hi', { sessionId: await app.session() });
      expect(await app.adapter.turns.steps(id)).toEqual([]);
    });

    it('FIX-08 asks a route again that chose no intent, or whose model chose an unknown one', async () => {
      const answers: unknown[] = [{ intents: 'refnud', reasoning: 'wants money back' }, [], 'act'];
      const desk = defineOrchestrator({
        name: 'desk',
        route: () => answers.shift() as string,
        intents: { act: () => reply('done'), other: () => reply('other') },
      });
      const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
      const sessionId = await app.session();
      const { id, reply: said } = await app.handle(desk).execute('hi', { sessionId });
      expect(said).toBe('done');
      expect(await app.turns.get(id)).toMatchObject({ failures: 2 });
    });

    it('FIX-08 asks a router again that chose an unknown intent', async () => {
      const answers = ['refnud', 'act'];
      const desk = defineOrchestrator({
        name: 'desk',
        router: { route: () => answers.shift() as string },
        intents: { act: () => reply('done'), other: () => reply('other') },
      });
      const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
      const { id } = await app.handle(desk).execute('hi', { sessionId: await app.session() });
      expect(await app.turns.get(id)).toMatchObject({ failures: 1, status: 'awaiting-input' });
    });

    it('FIX-08 fails a turn whose route returns no intent, and ends one whose route returns END_TURN', async () => {
      const desk = defineOrchestrator({
        name: 'desk',
        route: (turn) => (turn.input.text === 'end' ? END_TURN : []),
        intents: { act: () => reply('done'), other: () => reply('other') },
      });
      const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
      const sessionId = await app.session();
      const error = await rejection(app.handle(desk).execute('hi', { sessionId }), TurnFailedError);
      expect(error.failure).toMatchObject({ name: 'HandlerError', code: 'NO_INTENT' });
      expect(await app.handle(desk).execute('end', { sessionId })).toMatchObject({ reply: null });
    });
  });

  describe('FIX-11 a tool call id belongs to one tool and one input', () => {
    it('FIX-11 refuses the id of another call in parallel, in every attempt', async () => {
      const problems: SessionsError[] = [];
      const note = (error: SessionsError): void => void problems.push(error);
      const desk = defineOrchestrator({
        name: 'desk',
        iterate: true,
        route: () => ['a', 'b'],
        intents: {
          a: async ({ tools, attempt, iteration }) => {
            const input = { order: 1, lines: ['x'] };
            await tools.use('pay', `call ${iteration}`, () => 'paid', { input });
            // The order of keys does not matter.
            await tools.use('pay', `call ${iteration}`, () => 'twice', { input: { lines: ['x'], order: 1 } });
            if (iteration === 1 && attempt === 1) throw new Error('once more');
            return reply('a', iteration === 1 ? { status: 'completed' } : {});
          },
          b: async ({ tools, iteration }) => {
            await tools.use('refund', `call ${iteration}`, () => null).catch(note);
            await tools.use('pay', `call ${iteration}`, () => null, { input: { order: 2 } }).catch(note);
          },
        },
      });
      const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
      await app.handle(desk).execute('hi', { sessionId: await app.session() });
      // Two in each attempt's second iteration, two in the first iteration, which runs once.
      expect(problems).toHaveLength(6);
      expect(problems.every((error) => error instanceof HandlerError)).toBe(true);
      expect(problems[0]).toMatchObject({ code: 'TOOL_CALL_CONFLICT', callId: 'call 0', tool: 'pay' });
    });
  });

  describe('FIX-12 the outcome of a wait that timed out is stored', () => {
    it('FIX-12 runs onTimeout once, in whichever attempt', async () => {
      const asked: string[] = [];
      const { app, say } = await startDesk(open, async (turn) => {
        const decision = await turn.waitFor<{ approved: boolean; by: string }>('approval', {
          timeoutMs: 1,
          onTimeout: () => (asked.push('manager'), { approved: false, by: `call ${asked.length}` }),
        });
        await turn.step('after the wait', () => 1);
        if (turn.attempt === 1) throw new Error('once more');
        return reply(decision.by);
      });
      expect(await say(await app.session())).toMatchObject({ reply: 'call 1' });
      expect(asked).toEqual(['manager']);
    });
  });
});

/** Fails the attempt once the store has its route step. */
async function crashOnceStored(
  app: Awaited<ReturnType<typeof startApplication>>,
  { id }: Pick<TurnContext, 'id'>,
): Promise<never> {
  await eventually(async () => (await app.adapter.turns.steps(id)).some(({ kind }) => kind === 'route'));
  throw new Error('crash');
}

/** An application whose one intent is `answer`. */
async function startDesk(open: (typeof LIVE_STORES)[number]['open'], answer: Answer) {
  const desk = defineOrchestrator({ name: 'desk', intents: { answer } });
  const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
  return { app, say: (sessionId: string) => app.handle(desk).execute('hi', { sessionId }) };
}
