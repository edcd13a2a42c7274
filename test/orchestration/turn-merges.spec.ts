import { type OrchestrationStep, OrchestrationService } from 'nestjs-agent-sessions';
import { TurnFencedError } from 'nestjs-agent-sessions/adapter';
import { clockGoesOn, eventually } from '../support/eventually.js';
import { gate, LIVE_STORES } from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';
import { type Desk, deskOf, startDesk, toolsOf, useAll } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], resetSequenceOn: ['cancel'] },
  { name: 'help', availableTools: { allowed: ['*'] } },
];

describe.each(LIVE_STORES)('a state that is changed while a turn runs, over $name', ({ open }) => {
  it('ORC-30 ORC-07 ORC-11 what others add is added to what the turn does, once each', async () => {
    const desk = await startDesk(open(), { steps: STEPS });
    const { session, state, manager } = desk;
    const sessionId = await session();
    const states = manager.of('desk');

    await whileTurnRuns(desk, sessionId, ['search', 'quote'], async () => {
      await states.addUsedTool(sessionId, 'hook', { callId: 'h' });
      await states.addUsedTool(sessionId, 'search', { callId: 'search' });
      await states.addTokenUsage(sessionId, { totalTokens: 5 });
    });

    // A call of the same id outside of the turn is another call.
    expect(await state(sessionId)).toMatchObject({ cumulativeTokenUsage: { totalTokens: 8 } });
    expect(toolsOf(await state(sessionId))).toEqual(['hook', 'search', 'search', 'quote']);
  });

  it('ORC-30 ORC-06 ORC-09 keeps a step, a reset or a removal by others, and continues the turn from there', async () => {
    const desk = await startDesk(open(), { steps: STEPS });
    const { session, state, say, manager } = desk;
    const states = manager.of('desk');
    const [moved, reset, removed] = [await session(), await session(), await session()];
    for (const sessionId of [moved, reset, removed]) await say(sessionId, (turn) => useAll(turn, 'search'));

    await whileTurnRuns(desk, moved, ['quote'], () => states.setActiveStep(moved, 'help'));
    await whileTurnRuns(desk, reset, ['quote'], () => states.resetState(reset));
    await whileTurnRuns(desk, removed, ['quote'], () => states.removeSession(removed));

    expect(await state(moved)).toMatchObject({ activeStep: 'help', sequenceIndex: 0, progress: { booking: 1 } });
    expect((await state(moved))?.toolHistory).toMatchObject([{ step: 'booking' }, { tool: 'quote', step: 'help' }]);
    for (const sessionId of [reset, removed]) {
      expect(toolsOf(await state(sessionId))).toEqual(['quote']);
      expect(await state(sessionId)).toMatchObject({ activeStep: 'booking', sequenceIndex: 0 });
    }
    expect(await state(removed)).not.toBeNull();
    await whileTurnRuns(desk, removed, [], () => states.removeSession(removed));
    expect(await state(removed)).toBeNull();
  });

  it('ORC-30 keeps all changes of many concurrent writers', async () => {
    const desk = await startDesk(open(), { steps: STEPS });
    const { session, state, manager, app } = desk;
    const sessionId = await session();
    const states = manager.of('desk');
    const service = app.app.get(OrchestrationService, { strict: false }).of('desk');
    const tools = Array.from({ length: 12 }, (_, n) => `t${n}`);

    await whileTurnRuns(desk, sessionId, ['search', 'quote'], async () => {
      await Promise.all([
        ...tools.slice(0, 6).map((tool) => states.addUsedTool(sessionId, tool)),
        ...tools.slice(6).map((tool) => service.processToolUsage(sessionId, tool)),
        ...tools.map(() => states.addTokenUsage(sessionId, { promptTokens: 1 })),
      ]);
    });

    const after = await state(sessionId);
    expect(toolsOf(after).slice(0, 12).sort()).toEqual([...tools].sort());
    expect(toolsOf(after).slice(12)).toEqual(['search', 'quote']);
    expect(after).toMatchObject({ sequenceIndex: 2 });
    expect(after?.cumulativeTokenUsage).toMatchObject({ promptTokens: 12, totalTokens: 12 + 3 });
  });

  it('ORC-12 renews the TTL of a state in every turn, and creates a new state if it expired during a turn', () =>
    whileSteady(300, async () => {
      const desk = await startDesk(open(), { steps: STEPS }, { orchestration: { ttlSeconds: 1 } });
      const { session, say, state, document } = desk;
      const [used, idle] = [await session(), await session()];
      await say(used, (turn) => useAll(turn, 'search'));
      const first = await document(used);
      await clockGoesOn();
      await say(used, () => 'no tools');
      const second = await document(used);
      expect(second).toMatchObject({ version: first!.version, value: first!.value, batches: first!.batches });
      expect(Date.parse(second!.expiresAt!)).toBeGreaterThan(Date.parse(first!.expiresAt!));

      await say(idle, (turn) => useAll(turn, 'search'));
      await whileTurnRuns(desk, idle, ['quote'], () => eventually(async () => (await document(idle)) === null));
      expect(await state(idle)).toMatchObject({ sequenceIndex: 0 });
      expect(toolsOf(await state(idle))).toEqual(['quote']);

      // A turn without uses does not create an expired state again.
      await eventually(async () => (await document(used)) === null);
      await say(used, () => 'no tools');
      expect(await document(used)).toBeNull();
    }));

  it('ORC-30 SES-11 a session that is erased while its turn runs stays erased, and its state with it', async () => {
    const desk = await startDesk(open(), { steps: STEPS });
    const { app, session, say, document } = desk;
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search'));
    const quoted = gate();
    const { pass, open: release } = gate();
    const late: unknown[] = [];
    const running = say(sessionId, async (turn) => {
      await turn.tools.use('quote', 'q', () => null);
      quoted.open();
      await pass();
      await turn.tools.use('book', 'b', () => null).catch((error: unknown) => late.push(error));
    }).catch((error: unknown) => error);
    await quoted.pass();
    await app.sessions.delete(sessionId);
    expect(await document(sessionId)).toBeNull();
    release();
    expect(await running).toBeInstanceOf(Error);

    await eventually(() => late.length > 0);
    expect([TurnFencedError.name, 'TurnStoppedError']).toContain((late[0] as Error).constructor.name);
    expect(await document(sessionId)).toBeNull();
  });

  it('ORC-02 separates two agents with plans in one session', async () => {
    const other = deskOf({ steps: [{ name: 'greeting', isDefault: true, sequence: ['hello', 'bye'] }] }, 'other');
    const { app, session, say, state, manager, document } = await startDesk(
      open(),
      { steps: STEPS },
      { orchestrators: [other] },
    );
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search', 'quote'));
    await app.turns.execute('other', 'hi', {
      sessionId,
      context: { work: (turn: Parameters<typeof useAll>[0]) => useAll(turn, 'hello') },
    });
    expect(await state(sessionId)).toMatchObject({ activeStep: 'booking', sequenceIndex: 2 });
    expect(await manager.of(other).getState(sessionId)).toMatchObject({ activeStep: 'greeting', sequenceIndex: 1 });
    expect(toolsOf(await manager.of('other').getState(sessionId))).toEqual(['hello']);
    await manager.of('other').removeSession(sessionId);
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote']);
    expect(await document(sessionId, 'other')).toBeNull();
  });

  it('ORC-31 stores nothing for an agent without steps, and allows all tools', async () => {
    const { app, session, document, events, manager } = await startDesk(open(), {});
    const sessionId = await session();
    const seen: unknown[] = [];
    await app.turns.execute('desk', 'hi', {
      sessionId,
      context: {
        work: async (turn: Parameters<typeof useAll>[0]) => {
          await useAll(turn, 'any', 'tool');
          turn.usage.add({ totalTokens: 1_000_000 });
          turn.usage.assertWithinBudget();
          const { tools } = turn;
          seen.push(
            tools.allowed(['b', 'a']),
            tools.activeStep,
            tools.toAIOrchestrationState(),
            tools.state.toolHistory,
          );
        },
      },
    });
    expect(seen).toEqual([['b', 'a'], undefined, { recentlyUsedTools: [], sequenceIndex: 0 }, []]);
    expect(await document(sessionId)).toBeNull();
    expect(await manager.of('desk').getState(sessionId)).toBeNull();
    expect(events).toEqual([]);
  });

  it('ORC-30 ORC-08 a session of many turns keeps a short document that says the same', async () => {
    const { session, say, state, document, manager } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const states = manager.of('desk');
    const used: string[] = [];
    const tools = ['search', 'quote', 'book', 'cancel'];
    let longest = 0;
    let expected: number | undefined;
    for (let n = 0; n < 45; n += 1) {
      const now = Array.from({ length: 1 + (n % 3) }, (_, at) => tools[(used.length + at - Math.floor(n / 5)) % 4]);
      const allowed = await turnOf(now, n);
      used.push(...allowed);
      if (n % 5 === 4) {
        await states.addUsedTool(sessionId, 'hook');
        used.push('hook');
      }
      const { batches, version } = (await document(sessionId))!;
      // A turn counts its tokens with its first tool, and the rest when it settles. Each use that the plan limits is
      // stored before it begins (FIX-88); the plan never rejects `cancel`.
      const limited = allowed.filter((tool) => tool !== 'cancel').length;
      const added = limited + (allowed.length > 0 ? 2 : 1) + (n % 5 === 4 ? 1 : 0);
      expected = expected === undefined ? version : expected + added;
      longest = Math.max(longest, batches.length);
      expect(version).toBe(expected);
    }
    const after = await state(sessionId);
    expect(longest).toBeLessThanOrEqual(36);
    expect(toolsOf(after)).toEqual(used.slice(-100));
    const last = used.filter((tool) => tool !== 'hook');
    const index = last.length - 1 - last.lastIndexOf('cancel');
    expect(after).toMatchObject({
      sequenceIndex: index,
      cumulativeTokenUsage: { totalTokens: 45 },
      recentlyUsedTools: [...new Set([...used].reverse())],
    });

    async function turnOf(wanted: readonly string[], n: number): Promise<readonly string[]> {
      const done: string[] = [];
      await say(sessionId, async (turn) => {
        turn.usage.add({ totalTokens: 1 });
        for (const [at, tool] of wanted.entries()) {
          if (turn.tools.allowed([tool]).length === 0) continue;
          await turn.tools.use(tool, `${n} ${at}`, () => null);
          done.push(tool);
        }
      });
      return done;
    }
  });
});

/** The turn has used the tools when `change` is called, and settles after it. Call ids are the tools. */
async function whileTurnRuns(
  { say }: Desk,
  sessionId: string,
  tools: readonly string[],
  change: () => Promise<unknown>,
): Promise<void> {
  const { pass, open: release } = gate();
  const { pass: used, open: tell } = gate();
  const running = say(sessionId, async (turn) => {
    for (const tool of tools) await turn.tools.use(tool, tool, () => null);
    if (tools.length > 0) turn.usage.add({ totalTokens: 3 });
    tell();
    await pass(turn.signal);
  });
  await Promise.race([used(), running]);
  await change();
  release();
  await running;
}
