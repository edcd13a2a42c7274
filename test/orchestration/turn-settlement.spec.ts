import {
  type OrchestrationStep,
  type TurnContext,
  TurnCancelledError,
  TurnContextFactory,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { gate, LASTING_STORES, LIVE_STORES, rejection } from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';
import { stallingWorker, startDesk, toolsOf, useAll } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], onComplete: 'paying' },
  { name: 'paying', sequence: ['pay', 'mail'] },
];

describe.each(LIVE_STORES)('what turns do with their plan counts with their settlement, over $name', ({ open }) => {
  it('ORC-30 in the same commit: readers see none of it before, and all of it after', async () => {
    const { say, session, state, document, manager } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search'));
    const before = await state(sessionId);
    const { pass, open: release } = gate();
    const seen: unknown[] = [];

    const running = say(sessionId, async (turn) => {
      await useAll(turn, 'quote', 'book', 'pay');
      seen.push(turn.tools.activeStep?.name, toolsOf(turn.tools.state));
      await pass();
    });
    await eventually(() => seen.length > 0);
    const during = await state(sessionId);
    release();
    await running;

    expect(seen).toEqual(['paying', ['search', 'quote', 'book', 'pay']]);
    // Only the version shows that uses are stored before they begin (FIX-88).
    expect({ ...during, lastAccessed: 0 }).toEqual({ ...before, lastAccessed: 0, version: before!.version + 3 });
    expect(await state(sessionId)).toMatchObject({
      version: before!.version + 4,
      activeStep: 'paying',
      sequenceIndex: 1,
      progress: { booking: 0 },
    });
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote', 'book', 'pay']);
    expect((await document(sessionId))?.batches).toHaveLength(6);
    expect(await manager.of('desk').toAIOrchestrationState(sessionId)).toMatchObject({ allowedTools: ['mail'] });
  });

  it('ORC-30 FIX-88 without a separate store call, except before a use that the plan limits', async () => {
    const calls: string[] = [];
    const { app, session, say } = await startDesk(
      recordingAdapter(open(), calls),
      { steps: STEPS },
      { turns: { reconcileMs: 3_600_000 } },
    );
    const sessionId = await session();
    for (const tools of [['search', 'quote'], ['book'], []]) {
      calls.length = 0;
      await say(sessionId, async (turn) => {
        await useAll(turn, ...tools);
        turn.usage.add({ totalTokens: 1 });
        turn.usage.assertWithinBudget();
        turn.tools.allowed(['pay']);
      });
      await eventually(() => calls.includes('turns.settle'));
      const trips = calls.filter((call) => /^(state|turns\.(accept|claim|saveStep|settle))/.test(call));
      const uses = tools.flatMap(() => ['state.append', 'turns.saveStep']);
      expect(trips).toEqual(['turns.accept', ...uses, 'turns.settle']);
    }
    calls.length = 0;
    await app.turns.list({ sessionId });
    expect(calls.filter((call) => call.startsWith('state.'))).toEqual([]);
  });

  it('ORC-30 FIX-15 or not at all: of turns that fail or are cancelled only tokens stay', async () => {
    const { app, say, session, state, document } = await startDesk(open(), { steps: STEPS });
    const [fresh, used] = [await session(), await session()];
    await say(used, (turn) => useAll(turn, 'search'));
    const before = await document(used);

    for (const sessionId of [fresh, used]) {
      const fail = say(sessionId, async (turn) => {
        turn.usage.add({ totalTokens: 5 });
        await useAll(turn, sessionId === fresh ? 'search' : 'quote');
        throw new Error('after the tool');
      });
      expect(await app.turns.get((await rejection(fail, TurnFailedError)).turnId)).toMatchObject({ failures: 3 });

      const { pass } = gate();
      const reached: string[] = [];
      const cancelled = say(sessionId, async (turn) => {
        await useAll(turn, sessionId === fresh ? 'search' : 'quote');
        reached.push(turn.id);
        await pass(turn.signal);
      });
      const [id] = await eventually(() => (reached.length > 0 ? reached : null));
      const told = rejection(cancelled, TurnCancelledError);
      if (sessionId === fresh) await app.turns.cancel(id);
      // A later message interrupts it: the messages of the running turn stay, its changes to the plan do not.
      else await app.turns.execute('desk', 'next', { sessionId, whenBusy: 'interrupt', context: { work: () => 'ok' } });
      await told;
    }

    for (const [sessionId, batches] of [
      [fresh, []],
      [used, before!.batches],
    ] as const) {
      const after = await document(sessionId);
      expect(after?.batches.slice(0, batches.length)).toEqual(batches);
      const added = after?.batches.slice(batches.length).flatMap(({ entries }) => entries) ?? [];
      expect(added.length).toBeGreaterThan(0);
      for (const entry of added) expect(['tokens', 'turn']).toContain((entry as { type: string }).type);
      expect(await state(sessionId)).toMatchObject({
        recentlyUsedTools: sessionId === fresh ? [] : ['search'],
        cumulativeTokenUsage: { totalTokens: 15 },
      });
    }
  });

  it('ORC-30 without a repeated tool or a second advance when the turn is retried', async () => {
    const { say, session, state, events } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const ran: string[] = [];
    const indices: number[] = [];
    const use = ({ tools, id }: TurnContext, tool: string): Promise<string> =>
      tools.use(tool, `${id}-${tool}`, () => (ran.push(tool), `${tool} of ${ran.length}`));
    const results: string[] = [];

    await say(sessionId, async (turn) => {
      results.push(await use(turn, 'search'), await use(turn, 'quote'));
      indices.push(turn.tools.state.sequenceIndex);
      if (turn.attempt === 1) throw new Error('in between');
      results.push(await use(turn, 'book'));
      if (turn.attempt === 2) throw new Error('at the end');
    });

    expect(ran).toEqual(['search', 'quote', 'book']);
    expect(indices).toEqual([2, 2, 2]);
    expect(new Set(results)).toEqual(new Set(['search of 1', 'quote of 2', 'book of 3']));
    expect(await state(sessionId)).toMatchObject({ activeStep: 'paying', sequenceIndex: 0 });
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote', 'book']);
    await eventually(() => events.some(({ type }) => type === 'step-changed'));
    expect(events.filter(({ type }) => type === 'tool-recorded')).toHaveLength(3);
  });

  it('ORC-30 TRN-13 nor does one that waited for a signal between two tools', async () => {
    const { app, say, session, state, document } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const ran: string[] = [];
    const running = say(sessionId, async (turn) => {
      turn.usage.add({ totalTokens: 7 });
      await turn.tools.use('search', 's', () => void ran.push('search'));
      const { go } = await turn.waitFor<{ go: string }>('go');
      expect(turn.tools.state).toMatchObject({ sequenceIndex: 1, cumulativeTokenUsage: { totalTokens: 7 } });
      await turn.tools.use('quote', 'q', () => void ran.push(`quote ${go}`));
    });
    const [{ id }] = await eventually(async () => {
      const waiting = await app.turns.list({ sessionId, status: 'waiting' });
      return waiting.length > 0 ? waiting : null;
    });
    expect((await document(sessionId))?.batches).toMatchObject([
      { entries: [{ type: 'turn', mode: 'add' }] },
      { entries: [{ type: 'tokens', usage: { totalTokens: 7 } }] },
    ]);
    await app.turns.signal(id, 'go', { go: 'now' });
    await running;

    expect(ran).toEqual(['search', 'quote now']);
    expect(await state(sessionId)).toMatchObject({
      sequenceIndex: 2,
      cumulativeTokenUsage: { totalTokens: 7 },
    });
  });
});

/** SQLite has one worker process at a time. */
const SEVERAL_PROCESSES = LASTING_STORES.filter(({ name }) => name !== 'sqlite');

describe.each(SEVERAL_PROCESSES)('a worker that lost its turn, over $name', ({ create }) => {
  it('ORC-30 TRN-15 stores none of its changes to the plan, and runs no further tool', () =>
    whileSteady(400, async () => {
      const open = create();
      const ran: string[] = [];
      const adapter = stallingWorker(open(), () => ran.length > 0);
      const stalled = await startDesk(adapter, { steps: STEPS }, { turns: { leaseMs: 1000, reconcileMs: 3_600_000 } });
      const sessionId = await stalled.session();
      const { pass, open: wakeUp } = gate();
      const problems: unknown[] = [];
      const signals: AbortSignal[] = [];
      const work = (name: string) => async (turn: TurnContext) => {
        const use = (tool: string) => turn.tools.use(tool, tool, () => void ran.push(`${name} ${tool}`));
        await use('search');
        signals.push(turn.signal);
        if (name === 'stalled') await pass();
        await use('quote').catch((error: unknown) => problems.push(error));
      };
      const { id } = await stalled.app.turns.submit('desk', 'hi', { sessionId, context: { work: work('stalled') } });
      await eventually(() => signals.length === 1);

      const contexts = { provide: TurnContextFactory, useValue: { create: () => ({ work: work('other') }) } };
      const other = await startDesk(open(), { steps: STEPS }, { providers: [contexts] });
      expect(await other.app.turns.result(id)).toMatchObject({ status: 'awaiting-input' });
      await eventually(() => signals[0].aborted);
      wakeUp();
      await eventually(() => problems.length > 0);

      expect(ran).toEqual(['stalled search', 'other quote']);
      expect(toolsOf(await other.state(sessionId))).toEqual(['search', 'quote']);
      expect(stalled.events).toEqual([]);
    }));
});
