import { Controller, Post, UseGuards } from '@nestjs/common';
import {
  OrchestrationService,
  OrchestrationStateManager,
  type OrchestrationStep,
  RequireTool,
  SessionGuard,
  SessionsModule,
  SessionStore,
  type StepPredicateContext,
  StepPredicate,
  ToolGuard,
  ToolNotAllowedError,
  type TurnContext,
  TurnCancelledError,
  TurnContextFactory,
  TurnFailedError,
  TurnService,
  UseSession,
} from 'nestjs-agent-sessions';
import { PLATFORMS } from '../http/http-app.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import {
  type ApplicationOptions,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
} from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';
import { delayingUses, deskOf, type Desk, stallingWorker, startDesk, toolsOf, type Work } from './turn-desk.js';

/** One payment, then none. */
const PAY_ONCE: readonly OrchestrationStep[] = [
  { name: 'open', isDefault: true },
  { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
];
const IN_ORDER: readonly OrchestrationStep[] = [
  { name: 'ask', isDefault: true, sequence: ['look', 'pay'], onComplete: 'thank' },
  { name: 'thank', availableTools: { allowed: ['thank'] } },
];

@StepPredicate('has-paid')
class HasPaid {
  async holds({ state }: StepPredicateContext): Promise<boolean> {
    await new Promise((resolve) => setImmediate(resolve));
    return state.toolHistory.some(({ tool, outcome }) => tool === 'pay' && outcome !== 'failed');
  }
}

const PREDICATE: readonly OrchestrationStep[] = [
  { name: 'open', isDefault: true },
  { name: 'paid', conditions: [{ type: 'predicate', value: 'has-paid' }], availableTools: { denied: ['pay'] } },
];

const statusOf = async (uses: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(uses)).map((use) => {
    if (use.status === 'fulfilled') return 'done';
    return use.reason instanceof ToolNotAllowedError ? 'refused' : String(use.reason);
  });

/** Uses a tool outside of turns. @returns `done` or `refused` */
async function useOutside({ app }: Desk, sessionId: string, tool: string): Promise<string> {
  const service = app.app.get(OrchestrationService, { strict: false }).of('desk');
  const [status] = await statusOf([service.admitTool(sessionId, tool).then((use) => use.record('succeeded'))]);
  return status;
}

const payOutside = (desk: Desk, sessionId: string): Promise<string> => useOutside(desk, sessionId, 'pay');

const historyOf = async ({ state }: Desk, sessionId: string): Promise<string[]> =>
  ((await state(sessionId))?.toolHistory ?? []).map(({ tool, outcome, turnId }) =>
    [turnId === undefined ? 'outside' : 'turn', tool, outcome].join(' '),
  );

describe.each(LIVE_STORES)('uses by a turn and outside of it, over $name', ({ open }) => {
  const start = (steps: readonly OrchestrationStep[], options: ApplicationOptions = {}): Promise<Desk> =>
    startDesk(open(), { steps }, options);

  it.each([
    ['a condition', PAY_ONCE],
    ['a sequence', [{ name: 'ask', isDefault: true, sequence: ['pay', 'thank'] }] as OrchestrationStep[]],
    ['a predicate', PREDICATE],
  ])('FIX-88 admits one of many at the same time that the plan allows once by %s', async (_, steps) => {
    const desk = await start(steps, { providers: [HasPaid] });
    for (let round = 0; round < 6; round += 1) {
      const sessionId = await desk.session();
      const ran: string[] = [];
      let outcomes: string[] = [];
      await desk.say(sessionId, async ({ tools }) => {
        const inside = async (id: number): Promise<string> =>
          (await statusOf([tools.use('pay', String(id), () => void ran.push('turn'))]))[0];
        const outside = async (): Promise<string> => {
          const status = await payOutside(desk, sessionId);
          if (status === 'done') ran.push('outside');
          return status;
        };
        // Either may be sent first.
        const uses = Array.from({ length: 6 }, (_, n) => ((n + round) % 2 === 0 ? inside(n) : outside()));
        outcomes = await Promise.all(uses);
      });

      expect(outcomes.sort()).toEqual(['done', 'refused', 'refused', 'refused', 'refused', 'refused']);
      expect(ran).toHaveLength(1);
      expect(await historyOf(desk, sessionId)).toEqual([`${ran[0]} pay succeeded`]);
      // The next turn finds it, too.
      let later: string[] = [];
      await desk.say(sessionId, async ({ tools }) => {
        later = await statusOf([tools.use('pay', 'later', () => null)]);
      });
      expect(later).toEqual(['refused']);
    }
  });

  it('FIX-88 rejects uses outside of a turn from the moment that the turn admits its use; readers see it after the turn', async () => {
    const desk = await start(PAY_ONCE);
    const sessionId = await desk.session();
    const seen: unknown[] = [];
    await desk.say(sessionId, async ({ tools }) => {
      await tools.use('pay', '1', async () => {
        seen.push(await payOutside(desk, sessionId), await historyOf(desk, sessionId));
      });
      seen.push(await payOutside(desk, sessionId));
    });
    expect(seen).toEqual(['refused', [], 'refused']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn pay succeeded']);
    expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'paid' });
    await eventually(() => desk.events.some(({ type }) => type === 'step-changed'));
    const types = desk.events.map(({ type }) => type);
    expect(types.filter((type) => type === 'tool-violated')).toHaveLength(2);
    expect(types.filter((type) => type !== 'tool-violated')).toEqual(['created', 'tool-recorded', 'step-changed']);
  });

  it('FIX-88 rejects a use of a turn after one outside of it, runs nothing, and continues from the changed state', async () => {
    const desk = await start(PAY_ONCE);
    const sessionId = await desk.session();
    const ran: string[] = [];
    const seen: unknown[] = [];
    await desk.say(sessionId, async ({ tools }) => {
      seen.push(await payOutside(desk, sessionId), tools.allowed(['pay', 'mail']));
      const refused = await rejection(
        tools.use('pay', '1', () => void ran.push('pay')),
        ToolNotAllowedError,
      );
      seen.push(refused.step, tools.activeStep?.name, tools.allowed(['pay', 'mail']));
      await tools.use('mail', '2', () => void ran.push('mail'));
    });
    expect(seen).toEqual(['done', ['pay', 'mail'], 'paid', 'paid', ['mail']]);
    expect(ran).toEqual(['mail']);
    expect(await historyOf(desk, sessionId)).toEqual(['outside pay succeeded', 'turn mail succeeded']);
    expect(desk.events.filter(({ type }) => type === 'tool-violated')).toHaveLength(1);
  });

  it('FIX-88 continues one sequence by a turn and outside of it', async () => {
    const desk = await start(IN_ORDER);
    const sessionId = await desk.session();
    const seen: unknown[] = [];
    await desk.say(sessionId, async ({ tools }) => {
      seen.push(await payOutside(desk, sessionId));
      await tools.use('look', '1', () => null);
      seen.push(await payOutside(desk, sessionId));
      seen.push(...(await statusOf([tools.use('pay', '2', () => null)])));
    });
    expect(seen).toEqual(['refused', 'done', 'refused']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn look succeeded', 'outside pay succeeded']);
    expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'thank' });
    expect(await payOutside(desk, sessionId)).toBe('refused');
  });

  it('FIX-88 makes room for a use outside of the turn when the use of the turn fails', async () => {
    const desk = await start(PAY_ONCE);
    const sessionId = await desk.session();
    const outcomes: string[] = [];
    await desk.say(sessionId, async ({ tools }) => {
      const declined = tools.use('pay', '1', () => Promise.reject(new Error('declined')));
      outcomes.push(...(await statusOf([declined])));
      outcomes.push(await payOutside(desk, sessionId));
      outcomes.push(...(await statusOf([tools.use('pay', '2', () => null)])));
    });
    expect(outcomes).toEqual(['Error: declined', 'done', 'refused']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn pay failed', 'outside pay succeeded']);
    expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'paid' });
  });

  it('FIX-88 removes the uses of a turn that failed or was cancelled, unless a use outside of it followed', async () => {
    const desk = await start(IN_ORDER);
    const [failed, cancelled, followed] = [await desk.session(), await desk.session(), await desk.session()];
    const look = (turn: TurnContext): Promise<unknown> => turn.tools.use('look', '1', () => null);

    await rejection(
      desk.say(failed, async (turn) => {
        turn.usage.add({ totalTokens: 5 });
        await look(turn);
        throw new Error('later');
      }),
      TurnFailedError,
    );
    const { pass } = gate();
    const begun: string[] = [];
    const waiting = desk.say(cancelled, async (turn) => {
      await look(turn);
      begun.push(turn.id);
      await pass(turn.signal);
    });
    await eventually(() => begun.length > 0);
    await desk.app.turns.cancel(begun[0]);
    await rejection(waiting, TurnCancelledError);
    for (const sessionId of [failed, cancelled]) {
      expect(await historyOf(desk, sessionId)).toEqual([]);
      // `look` comes next again.
      expect(await payOutside(desk, sessionId)).toBe('refused');
    }
    expect(await desk.state(failed)).toMatchObject({ cumulativeTokenUsage: { totalTokens: 15 } });

    const outcomes: string[] = [];
    await rejection(
      desk.say(followed, async (turn) => {
        await look(turn);
        outcomes.push(await payOutside(desk, followed));
        throw new Error('later');
      }),
      TurnFailedError,
    );
    expect(outcomes).toEqual(['done', 'refused', 'refused']);
    expect(await historyOf(desk, followed)).toEqual(['turn look admitted', 'outside pay succeeded']);
    expect(await desk.state(followed)).toMatchObject({ activeStep: 'thank' });
  });

  it('FIX-88 starts each attempt from the same state, and counts a use of several attempts once', async () => {
    const desk = await start(IN_ORDER);
    const sessionId = await desk.session();
    const ran: string[] = [];
    const seen: unknown[] = [];
    await desk.say(sessionId, async ({ tools, attempt }) => {
      seen.push([tools.activeStep?.name, tools.state.sequenceIndex, tools.state.toolHistory.length]);
      await tools.use('look', '1', () => void ran.push('look'));
      // It is repeated by each attempt, because its result is not stored.
      await tools.use('pay', '2', () => {
        ran.push('pay');
        if (attempt < 3) throw new Error('try again');
      });
      seen.push(await payOutside(desk, sessionId));
    });
    expect(seen).toEqual([['ask', 0, 0], ['ask', 0, 0], ['ask', 0, 0], 'refused']);
    expect(ran).toEqual(['look', 'pay', 'pay', 'pay']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn look succeeded', 'turn pay succeeded']);
    expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'thank' });
  });

  it('FIX-88 counts the use of a turn that waits; of one that was cancelled meanwhile, until the next turn', async () => {
    const desk = await start(PAY_ONCE);
    const { app } = desk;
    const sessionId = await desk.session();
    const running = desk.say(sessionId, async (turn) => {
      await turn.tools.use('pay', '1', () => null);
      await turn.waitFor('go');
    });
    const [{ id }] = await eventually(async () => {
      const waiting = await app.turns.list({ sessionId, status: 'waiting' });
      return waiting.length > 0 ? waiting : null;
    });
    expect(await payOutside(desk, sessionId)).toBe('refused');
    await app.turns.cancel(id);
    await rejection(running, TurnCancelledError);
    expect(await historyOf(desk, sessionId)).toEqual([]);
    expect(await payOutside(desk, sessionId)).toBe('refused');

    await desk.say(sessionId, () => 'no tools');
    expect(await payOutside(desk, sessionId)).toBe('done');
    expect(await historyOf(desk, sessionId)).toEqual(['outside pay succeeded']);
  });

  it('FIX-88 continues a turn whose state is reset or removed meanwhile', async () => {
    const desk = await start(IN_ORDER);
    const states = desk.manager.of('desk');
    const changes = [(id: string) => states.resetState(id), (id: string) => states.removeSession(id)];
    for (const change of changes) {
      const sessionId = await desk.session();
      await desk.say(sessionId, async ({ tools }) => {
        await tools.use('look', '1', () => null);
        await change(sessionId);
        await tools.use('pay', '2', () => null);
        expect(await payOutside(desk, sessionId)).toBe('refused');
      });
      expect(await historyOf(desk, sessionId)).toEqual(['turn look succeeded', 'turn pay succeeded']);
      expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'thank' });
    }
  });

  it('FIX-88 allows a use again in the turn that replaces the one with the use', async () => {
    const desk = await start(PAY_ONCE);
    const sessionId = await desk.session();
    const pay = (turn: TurnContext): Promise<string> => turn.tools.use('pay', turn.id, () => 'paid');
    const first = await desk.say(sessionId, pay);
    const seen: string[] = [];
    const work = async (turn: TurnContext): Promise<string> => {
      const answer = await pay(turn);
      seen.push(await payOutside(desk, sessionId));
      return answer;
    };
    const second = await desk.app.turns.execute('desk', 'again', {
      sessionId,
      replaces: first.id,
      context: { work },
    });
    expect(second.reply).toBe('paid');
    expect(seen).toEqual(['refused']);
    expect((await desk.state(sessionId))?.toolHistory).toMatchObject([{ turnId: second.id, outcome: 'succeeded' }]);
  });

  it.each([1, 2])(
    'FIX-88 shows the turn, and its checkpoint, the order of the store after a use outside of it, in attempt %i',
    async (attempts) => {
      const desk = await start(IN_ORDER);
      const sessionId = await desk.session();
      const seen: unknown[] = [];
      await desk.say(sessionId, async ({ tools, attempt }) => {
        await tools.use('look', '1', () => null);
        if (attempt === 1) seen.push(await payOutside(desk, sessionId));
        if (attempt < attempts) throw new Error('try again');
        if (attempt === 1) seen.push(...(await statusOf([tools.use('pay', '2', () => null)])));
        seen.push(tools.activeStep?.name, tools.allowed(['look', 'pay', 'thank']));
        seen.push(
          tools.toAIOrchestrationState().activeStep,
          tools.state.toolHistory.map(({ tool }) => tool),
        );
        await tools.use('thank', '3', () => null);
      });
      const order = ['look', 'pay'];
      const view = ['thank', ['thank'], 'thank', order];
      expect(seen).toEqual(attempts === 1 ? ['done', 'refused', ...view] : ['done', ...view]);
      expect(await historyOf(desk, sessionId)).toEqual([
        'turn look succeeded',
        'outside pay succeeded',
        'turn thank succeeded',
      ]);
      const checkpoint = await desk.app.adapter.checkpoints.load('desk', sessionId);
      expect(checkpoint?.documents?.[0].value).toMatchObject({
        activeStep: 'thank',
        toolHistory: [...order, 'thank'].map((tool) => ({ tool, outcome: 'succeeded' })),
      });
      await eventually(() => desk.events.some((event) => event.type === 'tool-recorded' && event.tool === 'thank'));
      const recorded = desk.events.flatMap((event) => (event.type === 'tool-recorded' ? event.tool : []));
      expect(recorded.sort()).toEqual(['look', 'pay', 'thank']);
    },
  );

  it('FIX-88 shows a retry the order of the store after an iteration that it does not repeat', async () => {
    const desk = await startDesk(open(), { steps: IN_ORDER, iterate: true, maxIterations: 2 });
    const sessionId = await desk.session();
    const seen: unknown[] = [];
    await desk.say(sessionId, async ({ tools, iteration, attempt }) => {
      if (iteration === 0) {
        await tools.use('look', '1', () => null);
        seen.push(await payOutside(desk, sessionId));
        return;
      }
      if (attempt === 1) throw new Error('try again');
      seen.push(tools.activeStep?.name, toolsOf(tools.state));
      await tools.use('thank', '2', () => null);
    });
    expect(seen).toEqual(['done', 'thank', ['look', 'pay']]);
    expect(await historyOf(desk, sessionId)).toEqual([
      'turn look succeeded',
      'outside pay succeeded',
      'turn thank succeeded',
    ]);
  });

  it('FIX-88 replaces the use of an earlier attempt that a retry makes under another call id', async () => {
    const ran: string[] = [];
    const seen: string[] = [];
    const say = async (desk: Desk, tool: string, after: (sessionId: string) => Promise<unknown>): Promise<string> => {
      const sessionId = await desk.session();
      await desk.say(sessionId, async ({ tools, attempt }) => {
        const id = `attempt ${attempt}`;
        seen.push(...(await statusOf([tools.use(tool, id, () => void ran.push(id))])));
        await after(sessionId);
        if (attempt === 1) throw new Error('try again');
      });
      return sessionId;
    };
    for (const steps of [PAY_ONCE, PREDICATE]) {
      const desk = await start(steps, { providers: [HasPaid] });
      const sessionId = await say(desk, 'pay', async (id) => seen.push(await payOutside(desk, id)));
      expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'paid', toolHistory: [{ callId: 'attempt 2' }] });
      expect(await historyOf(desk, sessionId)).toEqual(['turn pay succeeded']);
      expect(await payOutside(desk, sessionId)).toBe('refused');
      expect(seen.splice(0)).toEqual(['done', 'refused', 'done', 'refused']);
      expect(ran.splice(0)).toEqual(['attempt 1', 'attempt 2']);
    }

    // A use outside of the turn was admitted because of the earlier use, which therefore stays.
    const desk = await start(IN_ORDER);
    const sessionId = await say(desk, 'look', async (id) => seen.push(await payOutside(desk, id)));
    expect(seen).toEqual(['done', 'done', 'refused', 'refused']);
    expect(ran).toEqual(['attempt 1']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn look admitted', 'outside pay succeeded']);
  });

  it('FIX-88 admits one of many calls that a retry makes at the same time, each under a new id', async () => {
    const desk = await start(PAY_ONCE);
    const sessionId = await desk.session();
    let outcomes: string[] = [];
    await desk.say(sessionId, async ({ tools, attempt }) => {
      const inside = async (id: number): Promise<string> =>
        (await statusOf([tools.use('pay', `${attempt} ${id}`, () => null)]))[0];
      if (attempt === 1) {
        await inside(0);
        throw new Error('try again');
      }
      outcomes = await Promise.all([0, 1, 2].flatMap((id) => [inside(id), payOutside(desk, sessionId)]));
    });
    expect(outcomes.sort()).toEqual(['done', 'refused', 'refused', 'refused', 'refused', 'refused']);
    expect((await desk.state(sessionId))?.toolHistory).toMatchObject([{ tool: 'pay', outcome: 'succeeded' }]);
  });

  it('FIX-88 keeps the use of an earlier attempt if a use outside of the turn is why the store rejects another one', async () => {
    const desk = await start([
      { name: 'open', isDefault: true },
      {
        name: 'closed',
        conditions: [{ type: 'tool_used', value: 'close' }],
        availableTools: { denied: ['pay', 'close'] },
      },
      { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
    ]);
    const sessionId = await desk.session();
    const seen: string[] = [];
    await desk.say(sessionId, async ({ tools, attempt }) => {
      if (attempt === 2) seen.push(...(await statusOf([tools.use('close', 'c', () => null)])));
      seen.push(...(await statusOf([tools.use('pay', 'p', () => null)])));
      if (attempt === 2) return;
      seen.push(await useOutside(desk, sessionId, 'close'));
      throw new Error('try again');
    });
    expect(seen).toEqual(['done', 'done', 'refused', 'done']);
    expect(await historyOf(desk, sessionId)).toEqual(['turn pay succeeded', 'outside close succeeded']);
  });

  it.each([
    ['drops', 'follows', PAY_ONCE, 'pay', 'mail', ['mail'], ['outside mail succeeded', 'turn mail succeeded'], 'done'],
    ['keeps', 'needs it', IN_ORDER, 'look', 'pay', [], ['turn look admitted', 'outside pay succeeded'], 'refused'],
  ])(
    'FIX-88 %s a use of an earlier attempt that the last one did not make, if a use outside of the turn %s',
    async (_, __, steps, first, outside, last: string[], history, status) => {
      const desk = await start(steps);
      const sessionId = await desk.session();
      await desk.say(sessionId, async ({ tools, attempt }) => {
        if (attempt === 1) {
          await tools.use(first, '1', () => null);
          await useOutside(desk, sessionId, outside);
          throw new Error('try again');
        }
        for (const tool of last) await tools.use(tool, '2', () => null);
      });
      expect(await historyOf(desk, sessionId)).toEqual(history);
      const checkpoint = await desk.app.adapter.checkpoints.load('desk', sessionId);
      const uses = history.map((use) => ({ tool: use.split(' ')[1] }));
      expect(checkpoint?.documents?.[0].value).toMatchObject({ toolHistory: uses });
      expect(await payOutside(desk, sessionId)).toBe(status);
    },
  );

  it('FIX-88 ignores a use that arrives after its turn was cancelled and has ended', async () => {
    const { pass, open: arrive } = gate();
    const arrived: string[] = [];
    const adapter = delayingUses(open(), async (store) => {
      arrived.push('sent');
      await pass();
      await store();
      arrived.push('stored');
    });
    const desk = await startDesk(adapter, { steps: PAY_ONCE });
    const sessionId = await desk.session();
    const begun: string[] = [];
    const waiting = desk.say(sessionId, async (turn) => {
      begun.push(turn.id);
      await turn.tools.use('pay', '1', () => null);
    });
    await eventually(() => arrived.length > 0);
    await desk.app.turns.cancel(begun[0]);
    await rejection(waiting, TurnCancelledError);
    arrive();
    await eventually(() => arrived.length === 2);

    expect(await historyOf(desk, sessionId)).toEqual([]);
    expect(await payOutside(desk, sessionId)).toBe('done');
    expect(desk.events.filter(({ type }) => type === 'created')).toHaveLength(1);
  });

  it.each([
    ['settles', 1],
    ['is retried and settles', 2],
    ['is stopped and kept', 0],
  ])('FIX-88 keeps a use that follows those of a turn that replaces another one and %s', async (_, attempts) => {
    const desk = await start(IN_ORDER);
    const { app } = desk;
    const sessionId = await desk.session();
    const look = async ({ id, tools }: TurnContext): Promise<void> => {
      await tools.use('look', id, () => null);
    };
    const first = await desk.say(sessionId, look);
    const { pass } = gate();
    const outside: string[] = [];
    const work = async (turn: TurnContext): Promise<void> => {
      await look(turn);
      outside.push(await payOutside(desk, sessionId));
      if (attempts === 0) await pass(turn.signal);
      if (turn.attempt < attempts) throw new Error('try again');
    };
    const { id } = await app.turns.submit('desk', 'again', { sessionId, replaces: first.id, context: { work } });
    if (attempts === 0) {
      await eventually(() => outside.length > 0);
      await app.turns.cancel(id, { keep: [{ role: 'assistant', content: 'half' }] });
      await rejection(app.turns.result(id), TurnCancelledError);
    } else await app.turns.result(id);

    expect(outside).toEqual(attempts === 2 ? ['done', 'refused'] : ['done']);
    expect(await payOutside(desk, sessionId)).toBe('refused');
    const outcome = attempts === 0 ? 'admitted' : 'succeeded';
    expect(await historyOf(desk, sessionId)).toEqual([`turn look ${outcome}`, 'outside pay succeeded']);
    expect(await desk.state(sessionId)).toMatchObject({ activeStep: 'thank', toolHistory: [{ turnId: id }, {}] });
  });

  it('FIX-88 takes one round trip for a use that the plan limits, and none for others', async () => {
    const calls: string[] = [];
    const desk = await startDesk(
      recordingAdapter(open(), calls),
      { steps: [...PAY_ONCE, { name: 'never', availableTools: { allowed: ['mail'] } }] },
      { turns: { reconcileMs: 3_600_000 } },
    );
    const sessionId = await desk.session();
    await desk.say(sessionId, () => 'no tools');
    calls.length = 0;
    await desk.say(sessionId, async ({ tools }) => {
      // The plan can reject it, but does not count its uses.
      await tools.use('search', '1', () => null);
      // The plan never rejects it.
      await tools.use('mail', '2', () => null);
      await tools.use('pay', '3', () => null);
    });
    await eventually(() => calls.includes('turns.settle'));
    expect(calls.filter((call) => /^(state|turns\.(saveStep|settle))/.test(call))).toEqual([
      'turns.saveStep',
      'turns.saveStep',
      'state.append',
      'turns.saveStep',
      'turns.settle',
    ]);
  });
});

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@UseSession()
class PaymentsController {
  @Post('pay')
  @RequireTool('pay')
  pay(): string {
    return 'paid';
  }
}

describe.each(PLATFORMS)('uses by a turn and by a route with @RequireTool on $name', ({ start }) => {
  it.each(LIVE_STORES)('FIX-88 admits one of many that the plan allows once, over $name', async ({ open }) => {
    const app = await start({
      imports: [
        SessionsModule.forRoot({ adapter: open(), sweep: false, principal: () => ({ userId: 'ann' }) }),
        SessionsModule.forFeature([deskOf({ steps: PAY_ONCE })]),
      ],
      controllers: [PaymentsController],
    });
    try {
      await app.listen(0, '127.0.0.1');
      const url = `${await app.getUrl()}/pay`;
      for (let round = 0; round < 4; round += 1) {
        const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
        const outside = async (): Promise<string> => {
          const response = await fetch(url, { method: 'POST', headers: { 'x-session-id': sessionId } });
          await response.text();
          return response.status === 403 ? 'refused' : String(response.status);
        };
        let outcomes: string[] = [];
        const work: Work = async ({ tools }) => {
          const inside = async (id: number): Promise<string> =>
            (await statusOf([tools.use('pay', String(id), () => null)]))[0];
          // Either may be sent first.
          const uses = Array.from({ length: 4 }, (_, n) => ((n + round) % 2 === 0 ? inside(n) : outside()));
          outcomes = await Promise.all(uses);
          return 'done';
        };
        await app.get(TurnService).execute('desk', 'hi', { sessionId, context: { work } });

        expect(outcomes.filter((outcome) => outcome === 'refused')).toHaveLength(3);
        const [admitted] = outcomes.filter((outcome) => outcome !== 'refused');
        expect(['done', '201']).toContain(admitted);
        const state = await app.get(OrchestrationStateManager).of('desk').getState(sessionId);
        expect(state?.toolHistory).toMatchObject([{ tool: 'pay', outcome: 'succeeded' }]);
        expect(await outside()).toBe('refused');
      }
    } finally {
      await app.close();
    }
  });
});

/** SQLite has one worker process at a time. */
const SEVERAL_PROCESSES = LASTING_STORES.filter(({ name }) => name !== 'sqlite');

describe.each(SEVERAL_PROCESSES)('the use of a lost attempt, over $name', ({ create }) => {
  it('FIX-88 counts until another attempt repeats it, and once; a late use of the lost attempt is rejected', () =>
    whileSteady(400, async () => {
      const open = create();
      const ran: string[] = [];
      const adapter = stallingWorker(open(), () => ran.length > 0);
      const turns = { leaseMs: 1000, reconcileMs: 3_600_000 };
      const stalled = await startDesk(adapter, { steps: PAY_ONCE }, { turns });
      const sessionId = await stalled.session();
      const { pass, open: wakeUp } = gate();
      const late: string[] = [];
      const work = (name: string) => async (turn: TurnContext) => {
        const [status] = await statusOf([
          turn.tools.use('pay', 'p', async () => {
            ran.push(name);
            if (name === 'stalled') await pass();
          }),
        ]);
        late.push(`${name} ${status}`);
      };
      const { id } = await stalled.app.turns.submit('desk', 'hi', { sessionId, context: { work: work('stalled') } });
      await eventually(() => ran.length === 1);

      const contexts = { provide: TurnContextFactory, useValue: { create: () => ({ work: work('other') }) } };
      const other = await startDesk(open(), { steps: PAY_ONCE }, { providers: [contexts] });
      expect(await payOutside(other, sessionId)).toBe('refused');
      expect(await other.app.turns.result(id)).toMatchObject({ status: 'awaiting-input' });
      wakeUp();
      await eventually(() => late.length === 2);

      // The effect ran twice under one idempotency key, as any step whose result was not stored.
      expect(ran).toEqual(['stalled', 'other']);
      expect(late[0]).toBe('other done');
      expect(await historyOf(other, sessionId)).toEqual(['turn pay succeeded']);
      expect(await payOutside(other, sessionId)).toBe('refused');
    }));
});
