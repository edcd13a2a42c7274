import {
  defineOrchestrator,
  OrchestrationStateManager,
  type SessionsAdapter,
  TokenBudgetExceededError,
  type TokenCounts,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
  type TurnService,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';

const IMPATIENT = { retry: { attempts: 7, backoff: { delayMs: 0 } } };

type Work = (turn: TurnContext) => unknown;

function tokens(totalTokens: number): TokenCounts {
  return { promptTokens: totalTokens, completionTokens: 0, totalTokens };
}

interface Desk {
  readonly turns: TurnService;
  readonly session: () => Promise<string>;
  /** Does the work of the message. */
  readonly say: (sessionId: string, work: Work) => ReturnType<TurnService['execute']>;
  /** The tokens of the session, for its budget. */
  readonly counted: (sessionId: string) => Promise<number | undefined>;
}

async function startDesk(
  adapter: SessionsAdapter,
  options: { tokenBudget?: number; leaseMs?: number } = {},
): Promise<Desk> {
  const { tokenBudget = 1_000_000, ...turns } = options;
  const desk = defineOrchestrator({
    name: 'desk',
    tokenBudget,
    intents: {
      answer: async (turn) => {
        await (turn.context.work as Work)(turn);
      },
    },
  });
  const app = await startApplication({ adapter, orchestrators: [desk], turns: { ...IMPATIENT, ...turns } });
  const manager = app.app.get(OrchestrationStateManager, { strict: false }).of('desk');
  return {
    turns: app.turns,
    session: app.session,
    say: (sessionId, work) => app.turns.execute('desk', 'hi', { sessionId, context: { work } }),
    counted: async (sessionId) => (await manager.getState(sessionId))?.cumulativeTokenUsage.totalTokens,
  };
}

/** The store of a worker that cannot renew the leases of its turns. */
function withoutRenewal(adapter: SessionsAdapter): SessionsAdapter {
  const turns = Object.create(adapter.turns, {
    renew: { value: () => Promise.reject(new Error('away')) },
  }) as SessionsAdapter['turns'];
  return Object.create(adapter, { turns: { value: turns } }) as SessionsAdapter;
}

describe.each(SAMPLED_STORES)('tokens of a turn over $name', ({ open }) => {
  it('FIX-15 counts the tokens of every attempt: 420 of seven, and not the 60 of the last', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const seen: number[] = [];
    const result = await say(sessionId, (turn) => {
      seen.push(turn.tools.state.cumulativeTokenUsage.totalTokens);
      turn.usage.add(tokens(60));
      if (turn.attempt < 7) throw new Error('not yet');
    });

    expect(result.usage).toEqual(tokens(420));
    expect(seen).toEqual([0, 60, 120, 180, 240, 300, 360]);
    const turn = await turns.get(result.id);
    expect(turn?.usage).toMatchObject(tokens(420));
    expect(turn?.report).toMatchObject({ attempt: 7, usage: { ...tokens(420), intents: tokens(420) } });
    expect(await counted(sessionId)).toBe(420);
  });

  it('FIX-15 refuses a turn that always fails once it has used up the budget', async () => {
    const { turns, say, session, counted } = await startDesk(open(), { tokenBudget: 420 });
    const sessionId = await session();
    const fail: Work = ({ usage }) => {
      usage.assertWithinBudget();
      usage.add(tokens(60));
      throw new Error('never');
    };
    const failed = await rejection(say(sessionId, fail), TurnFailedError);
    const turn = await turns.get(failed.turnId);
    expect(turn?.usage).toMatchObject(tokens(420));
    expect(turn?.report).toMatchObject({ status: 'failed', usage: tokens(420) });
    expect(await rejection(say(sessionId, fail), TokenBudgetExceededError)).toMatchObject({ usedTokens: 420 });
    expect(await counted(sessionId)).toBe(420);
  });

  it('FIX-15 refuses the next attempt of a turn that uses up the budget', async () => {
    const { say, session } = await startDesk(open(), { tokenBudget: 100 });
    let asked = 0;
    const error = await rejection(
      say(await session(), ({ usage }) => {
        usage.assertWithinBudget();
        asked += 1;
        usage.add(tokens(60));
        throw new Error('never');
      }),
      TokenBudgetExceededError,
    );
    expect(asked).toBe(2);
    expect(error).toMatchObject({ usedTokens: 120, tokenBudget: 100 });
  });

  it('FIX-15 counts usage after a step once, however often the step is replayed', async () => {
    const { say, session, counted } = await startDesk(open());
    const sessionId = await session();
    let asked = 0;
    const result = await say(sessionId, async (turn) => {
      for (const round of [1, 2, 3]) {
        const { usage } = await turn.step(`ask ${round}`, () => {
          asked += 1;
          return { usage: tokens(round) };
        });
        turn.usage.add(usage);
        if (turn.attempt === round) throw new Error('not yet');
      }
      const found = await turn.tools.use('search', 'call', () => ({ usage: tokens(10) }));
      turn.usage.add(found.usage);
      if (turn.attempt < 6) throw new Error('not yet');
    });
    expect(asked).toBe(3);
    expect(result.usage).toEqual(tokens(16));
    expect(await counted(sessionId)).toBe(16);
  });

  it('FIX-15 counts the sum of steps once, and what later steps add to it', async () => {
    const { say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const result = await say(sessionId, async (turn) => {
      let sum = 0;
      try {
        for (const round of [1, 2, 3]) {
          sum += await turn.step(`ask ${round}`, () => 100);
          if (turn.attempt === round) throw new Error('not yet');
        }
      } finally {
        turn.usage.add(tokens(sum));
      }
    });
    expect(result.usage).toEqual(tokens(300));
    expect(await counted(sessionId)).toBe(300);
  });

  it('FIX-15 counts a cancelled turn', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const began = gate();
    const cancelled = rejection(
      say(sessionId, async (turn) => {
        turn.usage.add(tokens(60));
        began.open();
        await gate().pass(turn.signal);
      }),
      TurnCancelledError,
    );
    await began.pass();
    const [{ id }] = await turns.list({ sessionId });
    await turns.cancel(id);
    await cancelled;
    expect(await turns.get(id)).toMatchObject({ status: 'cancelled', usage: tokens(60) });
    expect((await turns.get(id))?.report).toMatchObject({ usage: tokens(60) });
    expect(await counted(sessionId)).toBe(60);
  });

  it('FIX-15 counts the usage of a turn that is cancelled while it waits', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const cancelled = rejection(
      say(sessionId, async (turn) => {
        turn.usage.add(tokens(60));
        await turn.waitFor('approval');
      }),
      TurnCancelledError,
    );
    const { id } = await eventually(async () => {
      const [waiting] = await turns.list({ sessionId, status: 'waiting' });
      return waiting;
    });
    expect(await counted(sessionId)).toBe(60);
    await turns.cancel(id);
    await cancelled;
    expect(await turns.get(id)).toMatchObject({ status: 'cancelled', usage: tokens(60) });
    expect(await counted(sessionId)).toBe(60);
  });

  it('FIX-15 counts usage before a wait once, when the turn resumes', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const resumed = say(sessionId, async (turn) => {
      turn.usage.add(tokens(60));
      await turn.waitFor('first');
      turn.usage.add(tokens(1));
      await turn.waitFor('second');
      turn.usage.add(tokens(2));
    });
    for (const signal of ['first', 'second']) {
      const { id } = await eventually(async () => {
        const [waiting] = await turns.list({ sessionId, status: 'waiting' });
        return waiting?.waitingFor?.signal === signal ? waiting : null;
      });
      await turns.signal(id, signal, true);
    }
    expect((await resumed).usage).toEqual(tokens(63));
    expect(await counted(sessionId)).toBe(63);
  });

  it('FIX-15 counts a signal that comes early, once', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const result = await say(sessionId, async (turn) => {
      if (turn.attempt === 1) await turns.signal(turn.id, 'approval', true);
      const { usage } = await turn.step('ask', () => ({ usage: tokens(60) }));
      turn.usage.add(usage);
      await turn.waitFor('approval');
    });
    expect(result.usage).toEqual(tokens(60));
    expect(await counted(sessionId)).toBe(60);
  });

  it('FIX-15 counts of a lost attempt what its stored steps recorded', async () => {
    const { turns, say, session, counted } = await startDesk(withoutRenewal(open()), { leaseMs: 1500 });
    const sessionId = await session();
    const during: unknown[] = [];
    const result = await say(sessionId, async (turn) => {
      turn.usage.add(tokens(1000));
      const { usage } = await turn.step('ask', () => ({ usage: tokens(60) }));
      turn.usage.add(usage);
      await turn.step('pay', () => 'paid');
      const again = await turn.step('ask again', () => ({ usage: tokens(7) }));
      turn.usage.add(again.usage);
      if (turn.attempt > 1) return;
      during.push((await turns.get(turn.id))?.usage, await counted(sessionId));
      // The lease is not renewed, so another attempt begins.
      await gate().pass(turn.signal);
    });
    expect(during).toMatchObject([tokens(1060), 1060]);
    // The model outside of steps was called twice.
    expect(result.usage).toEqual(tokens(2067));
    expect(await counted(sessionId)).toBe(2067);
  });

  it('FIX-15 returns no usage if no model was counted', async () => {
    const { turns, say, session, counted } = await startDesk(open());
    const sessionId = await session();
    const result = await say(sessionId, (turn) => turn.step('look', () => 1));
    expect(result).not.toHaveProperty('usage');
    expect(await turns.get(result.id)).not.toHaveProperty('usage');
    expect(await counted(sessionId)).toBeUndefined();
  });
});
