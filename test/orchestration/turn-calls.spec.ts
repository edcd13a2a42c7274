import {
  HandlerError,
  InvalidInputError,
  memoryAdapter,
  type OrchestrationStep,
  reply,
  StateSerializationError,
  ToolNotAllowedError,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection } from '../support/running-application.js';
import { startDesk, toolsOf } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], resetSequenceOn: ['cancel'] },
];

describe.each(LIVE_STORES)('calls of tools in a turn over $name', ({ open }) => {
  it('ORC-07 ORC-28 runs a call once, and returns its result for every repetition', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    let runs = 0;
    const results: unknown[] = [];
    const problems: unknown[] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      const search = (): Promise<unknown> => tools.use('search', 'c', () => ({ hits: (runs += 1) }));
      results.push(...(await Promise.all([search(), search()])), await search());
      if (attempt === 1) throw new Error('again');
      problems.push(
        await rejection(
          tools.use('quote', 'c', () => null),
          HandlerError,
          'TOOL_CALL_CONFLICT',
        ),
      );
      results.push(await tools.use('quote', 'q', () => undefined));
    });

    expect(results).toEqual([...Array.from({ length: 6 }, () => ({ hits: 1 })), null]);
    expect(problems).toMatchObject([{ code: 'TOOL_CALL_CONFLICT', callId: 'c', tool: 'search' }]);
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote']);
  });

  it('ORC-07 rejects an attempt that calls another tool with a stored id, and runs nothing', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const ran: string[] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      if (attempt === 1) {
        await tools.use('search', 'c', () => void ran.push('search'));
        throw new Error('again');
      }
      await rejection(
        tools.use('cancel', 'c', () => void ran.push('cancel')),
        HandlerError,
        'TOOL_CALL_CONFLICT',
      );
    });
    expect(ran).toEqual(['search']);
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: [], toolHistory: [] });
  });

  it('FIX-63 takes ids of any length and with any characters, and stores results under them', async () => {
    const { say, session, state } = await startDesk(open(), { steps: [{ name: 'open', isDefault: true }] });
    const sessionId = await session();
    const ids = ['x'.repeat(256), `${'x'.repeat(256)}y`, 'call\u0000\n', `call_${'😀'.repeat(5000)}`];
    const keys: string[] = [];
    const results: unknown[] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      for (const id of ids) results.push(await tools.use('search', id, ({ key }) => keys.push(key), { input: { id } }));
      if (attempt === 1) throw new Error('again');
    });
    expect(results).toEqual([1, 2, 3, 4, 1, 2, 3, 4]);
    expect(new Set(keys).size).toBe(4);
    expect(toolsOf(await state(sessionId))).toHaveLength(4);
  });

  it('FIX-63 takes an id that returns with another input as a new call, in every attempt', async () => {
    const { say, session, state } = await startDesk(open(), { steps: [{ name: 'open', isDefault: true }] });
    const sessionId = await session();
    const keys: string[] = [];
    const results: unknown[] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      const look = (city: string): Promise<unknown> =>
        tools.use('weather', '0', ({ key }) => (keys.push(key), `${city} ${keys.length}`), { input: { city } });
      for (const city of ['Rome', 'Oslo', 'Rome', 'Oslo']) results.push(await look(city));
      if (attempt === 1) throw new Error('again');
    });
    const once = ['Rome 1', 'Oslo 2', 'Rome 1', 'Oslo 2'];
    expect(results).toEqual([...once, ...once]);
    expect(new Set(keys).size).toBe(2);
    expect((await state(sessionId))?.toolHistory.map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded']);
  });

  it.each([
    ['in one attempt', 0],
    ['in the next attempt', 1],
  ])('FIX-63 takes the id of a call that failed for another tool, %s', async (_, failedAttempts) => {
    const { say, session, state } = await startDesk(open(), {
      steps: [{ name: 'booking', isDefault: true, sequence: [{ anyOf: ['search', 'find'] }, 'book'] }],
    });
    const sessionId = await session();
    const fail = (): never => {
      throw new Error('The service is down.');
    };
    await say(sessionId, async ({ tools, attempt }) => {
      if (failedAttempts === 0) await tools.use('search', 'call_0', fail, { input: 1 }).catch(() => undefined);
      else if (attempt <= failedAttempts) await tools.use('search', 'call_0', fail, { input: 1 });
      await tools.use('find', 'call_0', () => 2, { input: 2 });
    });

    const { toolHistory, sequenceIndex } = (await state(sessionId))!;
    // The state has the uses of the attempt that succeeded.
    const failed = failedAttempts === 0 ? ['search failed'] : [];
    expect(toolHistory.map(({ tool, outcome }) => `${tool} ${outcome}`)).toEqual([...failed, 'find succeeded']);
    expect(sequenceIndex).toBe(1);
  });

  it('FIX-63 FIX-11 refuses an id without an answer that answer 0 has for another tool, and the reverse', async () => {
    const { say, session } = await startDesk(open(), { steps: STEPS });
    const problems: unknown[] = [];
    const refused = async (call: Promise<unknown>): Promise<void> =>
      void problems.push((await rejection(call, HandlerError, 'TOOL_CALL_CONFLICT')).tool);
    await say(await session(), async ({ tools }) => {
      await tools.use('search', 'call_0', () => 1);
      await refused(tools.use('quote', 'call_0', () => 2, { answer: 0 }));
      await tools.use('quote', 'call_1', () => 2, { answer: 0 });
      await refused(tools.use('book', 'call_1', () => 3));
    });
    expect(problems).toEqual(['search', 'quote']);
  });

  it('FIX-63 keeps the calls of a later answer apart, even with the same input', async () => {
    const { say, session, state } = await startDesk(open(), { steps: [{ name: 'open', isDefault: true }] });
    const sessionId = await session();
    const keys: string[] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      for (const answer of [0, 1, 1, 0]) {
        await tools.use('roll', '0', ({ key }) => void keys.push(key), { input: {}, answer });
      }
      if (attempt === 1) throw new Error('again');
    });
    expect(new Set(keys).size).toBe(2);
    expect(keys).toHaveLength(2);
    expect(toolsOf(await state(sessionId))).toEqual(['roll', 'roll']);
  });

  it('FIX-63 FIX-11 refuses an id with another input while its call runs, also in one answer', async () => {
    const { say, session } = await startDesk(open(), { steps: [{ name: 'open', isDefault: true }] });
    const problems: unknown[] = [];
    await say(await session(), async ({ tools }) => {
      for (const answer of [undefined, 1]) {
        const running = gate();
        const first = tools.use('pay', 'c', () => running.pass(), { input: { order: 1 }, answer });
        problems.push(
          await rejection(
            tools.use('pay', 'c', () => null, { input: { order: 2 }, answer }),
            HandlerError,
            'TOOL_CALL_CONFLICT',
          ),
        );
        running.open();
        await first;
      }
    });
    expect(problems).toMatchObject([{ callId: 'c', tool: 'pay' }, { callId: 'c' }]);
  });

  it.each([[''], [7], [undefined]])('FIX-63 refuses %p as id of a call', async (id) => {
    const { say, session } = await startDesk(open(), { steps: [{ name: 'open', isDefault: true }] });
    await say(await session(), async ({ tools }) => {
      await rejection(
        tools.use('pay', id as string, () => null),
        InvalidInputError,
      );
    });
  });

  it('ORC-07 ids are of their turn: the same one in another turn is another call, which counts', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const turns: string[] = [];
    for (const tool of ['search', 'quote']) {
      await say(sessionId, async (turn) => {
        await turn.tools.use(tool, 'call-1', () => void turns.push(turn.id));
      });
    }
    const after = await state(sessionId);
    expect(after?.toolHistory.map(({ tool, callId, turnId }) => [tool, callId, turnId])).toEqual([
      ['search', 'call-1', turns[0]],
      ['quote', 'call-1', turns[1]],
    ]);
    expect(after).toMatchObject({ sequenceIndex: 2 });
  });

  it('ORC-23 ORC-28 calls made at once run one after another while a sequence is under way, and side by side otherwise', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const log: string[] = [];
    const atOnce = ({ tools }: TurnContext, ...names: string[]): Promise<unknown[]> =>
      Promise.all(
        names.map((tool) =>
          tools.use(tool, tool, async () => {
            log.push(`${tool} begins`);
            await new Promise((resolve) => setImmediate(resolve));
            log.push(`${tool} ends`);
            return tool;
          }),
        ),
      );
    await say(sessionId, async (turn) => {
      const results = await atOnce(turn, 'search', 'quote', 'book');
      expect(results).toEqual(['search', 'quote', 'book']);
    });
    expect(log).toEqual(['search begins', 'search ends', 'quote begins', 'quote ends', 'book begins', 'book ends']);
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote', 'book']);

    // Each waits for the other one to begin.
    const { pass: a, open: openA } = gate();
    const { pass: b, open: openB } = gate();
    await say(sessionId, async ({ tools, signal }) => {
      await Promise.all([
        tools.use('left', 'l', async () => (openA(), b(signal))),
        tools.use('right', 'r', async () => (openB(), a(signal))),
      ]);
    });
    expect(
      toolsOf(await state(sessionId))
        .slice(3)
        .sort(),
    ).toEqual(['left', 'right']);
  });

  it('ORC-28 one of those made at once that is refused, or fails, does not hold up the others', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const outcomes: string[] = [];
    await say(sessionId, async ({ tools }) => {
      const results = await Promise.allSettled([
        tools.use('search', '1', () => 'found'),
        tools.use('book', '2', () => 'booked too early'),
        tools.use('quote', '3', () => Promise.reject(new Error('no quote'))),
        tools.use('quote', '4', () => 'quoted'),
      ]);
      outcomes.push(...results.map(({ status }) => status));
    });
    expect(outcomes).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect((await state(sessionId))?.toolHistory).toMatchObject([
      { tool: 'search', callId: '1', outcome: 'succeeded' },
      { tool: 'quote', callId: '3', outcome: 'failed' },
      { tool: 'quote', callId: '4', outcome: 'succeeded' },
    ]);
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 2 });
  });

  it('ORC-28 ORC-11 neither tools nor tokens belong inside a step or a tool, where a later attempt would not come by', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const problems: Error[] = [];
    const note = (error: Error): void => void problems.push(error);
    await say(sessionId, async (turn) => {
      const { tools, usage } = turn;
      await tools.use('search', 'outer', () => tools.use('quote', 'inner', () => null).catch(note));
      await turn.step('loop', () => tools.use('quote', 'looped', () => null).catch(note));
      await turn.step('model', () => {
        try {
          usage.add({ totalTokens: 5 });
        } catch (error) {
          note(error as Error);
        }
      });
      await tools.use('quote', 'after', () => null);
      usage.add({ totalTokens: 7 });
    });
    expect(problems.map(({ message }) => message.slice(0, 53))).toEqual([
      'turn.tools.use must not be called inside a step: call',
      'turn.tools.use must not be called inside a step: call',
      'turn.usage.add must not be called inside a step: retu',
    ]);
    const after = await state(sessionId);
    expect(toolsOf(after)).toEqual(['search', 'quote']);
    expect(after?.cumulativeTokenUsage.totalTokens).toBe(7);
  });

  it('ORC-28 does not crash the process if a call is no longer awaited', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listener);
    await say(sessionId, async ({ tools }) => {
      const first = tools.use('search', '1', () => Promise.reject(new Error('sold out')));
      void tools.use('quote', '2', () => 'too early');
      await rejection(first, Error);
      return reply('Sorry.');
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 0 });
  });

  it("ORC-30 a tool that throws is recorded as failed and moves nothing, and the error is the handler's to handle", async () => {
    const { say, session, state, events } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    class Sold extends Error {}
    const sold = new Sold('out');
    const caught: unknown[] = [];
    await say(sessionId, async ({ tools }) => {
      await tools.use('search', '1', () => Promise.reject(sold)).catch((error: unknown) => caught.push(error));
      await tools
        .use('search', '2', () => {
          throw sold;
        })
        .catch((error: unknown) => caught.push(error));
      // The same call made again that fails again is the same failure.
      await tools.use('search', '1', () => Promise.reject(sold)).catch((error: unknown) => caught.push(error));
      await rejection(
        tools.use('search', '3', (): unknown => ({ at: new Date() })),
        StateSerializationError,
      );
    });
    expect(caught).toEqual([sold, sold, sold]);
    const after = await state(sessionId);
    expect(after?.toolHistory.map(({ callId, outcome }) => [callId, outcome])).toEqual([
      ['1', 'failed'],
      ['2', 'failed'],
      ['3', 'failed'],
    ]);
    expect(after).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: [] });
    await eventually(() => events.length === 4);
    expect(events.map((event) => ('outcome' in event ? `${event.type} ${event.outcome}` : event.type)).sort()).toEqual([
      'created',
      ...Array.from({ length: 3 }, () => 'tool-recorded failed'),
    ]);
  });

  it('ORC-28 a call that failed or was refused may be made again, and counts then', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    await say(sessionId, async ({ tools }) => {
      await rejection(
        tools.use('quote', '2', () => 'too early'),
        ToolNotAllowedError,
      );
      await rejection(
        tools.use('search', '1', () => Promise.reject(new Error('busy'))),
        Error,
      );
      await tools.use('search', '1', () => 'found');
      await tools.use('quote', '2', () => 'booked');
    });
    const after = await state(sessionId);
    expect(after?.toolHistory.map(({ callId, outcome }) => [callId, outcome])).toEqual([
      ['1', 'failed'],
      ['1', 'succeeded'],
      ['2', 'succeeded'],
    ]);
    expect(after).toMatchObject({ sequenceIndex: 2 });
  });
});

it.each([
  ['', 'c', 'tool'],
  ['x'.repeat(257), 'c', 'tool'],
  [7, 'c', 'tool'],
  ['search', '', 'callId'],
  ['search', undefined, 'callId'],
])('ORC-28 refuses the tool %p with the call id %p', async (tool, callId, path) => {
  const { say, session, document } = await startDesk(memoryAdapter(), { steps: STEPS });
  const sessionId = await session();
  const problems: unknown[] = [];
  await say(sessionId, async ({ tools }) => {
    problems.push(
      await rejection(
        tools.use(tool as string, callId as string, () => null),
        InvalidInputError,
      ),
    );
  });
  expect(problems).toMatchObject([{ path }]);
  expect(await document(sessionId)).toBeNull();
});
