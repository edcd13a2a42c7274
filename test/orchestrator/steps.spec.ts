import { Logger } from '@nestjs/common';
import {
  defineOrchestrator,
  InvalidInputError,
  reply,
  type StepInfo,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { textLike } from '../support/orchestration.js';
import { gate, LASTING_STORES, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

describe.each(LIVE_STORES)('steps of a turn over $name', ({ open }) => {
  it('BOT-30 a retried turn gets stored results instead of repeating them', async () => {
    const effects: string[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      const order = await turn.step('load', () => (effects.push('load'), { id: 7, lines: ['a'] }));
      const receipt = await turn.step('pay', async () => (effects.push('pay'), `receipt of ${order.id}`));
      if (turn.attempt < 3) throw new Error('after the effects');
      return reply(`${receipt} ${order.lines.join()}`);
    });
    expect(await say(await app.session())).toMatchObject({ reply: 'receipt of 7 a' });
    expect(effects).toEqual(['load', 'pay']);
  });

  it('BOT-30 DAY-17 warns of a step that a later attempt does not call, because its effect may be repeated', async () => {
    const { lines, logger } = capturingLogger();
    const { app, say } = await startDesk(open, async (turn) => {
      await turn.step('load', async () => {
        await turn.step('inside', () => 1);
      });
      await turn.step(`charge ${turn.attempt}`, () => 'charged');
      throw new Error('after the effects');
    });
    Logger.overrideLogger(logger);
    await rejection(say(await app.session()), TurnFailedError);
    Logger.overrideLogger(false);

    const warned = lines.filter((line) => line.includes('did not call step'));
    // The second attempt, and the third one.
    expect(warned.toSorted()).toEqual(
      ['charge 1', 'charge 1', 'charge 2'].map((name) =>
        textLike(new RegExp(`did not call step "${name}" again, which an earlier attempt had completed`)),
      ),
    );
  });

  it('BOT-30 does not warn of steps that a failed attempt may not have reached', async () => {
    const { lines, logger } = capturingLogger();
    const { app, say } = await startDesk(open, async (turn) => {
      if (turn.attempt === 2) {
        await turn.step('load', () => 1);
        await turn.step('extra', () => 1, { key: 'a' });
        throw new Error('too early');
      }
      for (const part of [1, 2]) await turn.step('load', () => part);
      await turn.step('pay', () => 1);
      await turn.step('extra', () => 1, { key: 'a' });
      if (turn.attempt === 1) throw new Error('after the effects');
      return reply('ok');
    });
    Logger.overrideLogger(logger);
    await say(await app.session());
    Logger.overrideLogger(false);

    expect(lines.filter((line) => line.includes('failed in attempt'))).toHaveLength(2);
    expect(lines.filter((line) => /fewer times|did not call step/.test(line))).toEqual([]);
  });

  it('BOT-30 DAY-17 warns of a step that is called fewer times than before, because its results may be swapped', async () => {
    const { lines, logger } = capturingLogger();
    const { app, say } = await startDesk(open, async (turn) => {
      const items = turn.attempt === 1 ? [1, 2, 3] : [2, 3];
      for (const item of items) await turn.step('load', () => item);
      for (const item of items) await turn.step('pay', () => item, { key: `${item}` });
      if (turn.attempt === 1) throw new Error('after the effects');
      return reply('ok');
    });
    Logger.overrideLogger(logger);
    await say(await app.session());
    Logger.overrideLogger(false);

    const warned = lines.filter((line) => /fewer times|did not call step/.test(line));
    expect(warned.toSorted()).toEqual([
      textLike(
        /called step "load" fewer times than an earlier attempt, .*turn\.step\("load", work, \{ key: item\.id \}\)/,
      ),
      textLike(/did not call step "pay" again/),
    ]);
  });

  it('BOT-30 does not warn of the steps of a route and of iterations whose result is stored', async () => {
    const { lines, logger } = capturingLogger();
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      route: async (turn) => turn.step('choose', () => 'answer'),
      intents: {
        answer: async (turn) => {
          await turn.step(`work ${turn.iteration}`, () => 1);
          if (turn.iteration === 1 && turn.attempt === 1) throw new Error('in the second iteration');
          return reply('ok');
        },
      },
      evaluate: (turn) => turn.step('judge', () => turn.iteration === 1),
    });
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    Logger.overrideLogger(logger);
    await handle(desk).execute('hi', { sessionId: await session() });
    Logger.overrideLogger(false);

    expect(lines.filter((line) => line.includes('failed in attempt 1'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('did not call step'))).toEqual([]);
  });

  it('BOT-30 a step that failed is not stored: the next attempt runs it', async () => {
    let tries = 0;
    const { app, say } = await startDesk(open, (turn) =>
      turn.step('pay', () => {
        tries += 1;
        if (tries === 1) throw new Error('the bank is closed');
        return 'paid';
      }),
    );
    expect(await say(await app.session())).toMatchObject({ reply: 'paid' });
    expect(tries).toBe(2);
  });

  it('FIX-91 gives each call of a keyed step its own copy of the result, in every attempt', async () => {
    const seen: unknown[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      const load = () => turn.step('load', () => ({ lines: ['a'] }), { key: 'order 7' });
      const orders = [...(await Promise.all([load(), load()])), await load()];
      const nested = await turn.step(
        'outer',
        async () => {
          const inner = () => turn.step('inner', () => ({ lines: ['a'] }), { key: 'order 7' });
          return [await inner(), await inner()].map((order) => order.lines.push('b'));
        },
        { key: 'outer' },
      );
      seen.push(...orders.map(({ lines }) => lines.push('b')), ...nested, (await load()).lines);
      if (turn.attempt === 1) throw new Error('once more');
    });
    await say(await app.session());
    expect(seen).toEqual([2, 2, 2, 2, 2, ['a'], 2, 2, 2, 2, 2, ['a']]);
  });

  it('BOT-30 numbers steps of one name that follow one another', async () => {
    const effects: number[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      const pay = (cents: number) => turn.step('pay', () => (effects.push(cents), `paid ${cents}`));
      const results = [await pay(1), await pay(2), await pay(3), await pay(4)];
      if (turn.attempt === 1) throw new Error('after the effects');
      return reply(results.join(', '));
    });
    expect(await say(await app.session())).toMatchObject({ reply: 'paid 1, paid 2, paid 3, paid 4' });
    expect(effects.sort()).toEqual([1, 2, 3, 4]);
  });

  it('BOT-30 a step has the same key in every attempt, and no two steps share one', async () => {
    const infos: (StepInfo & { readonly attempt: number; readonly isLive: boolean })[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      route: async (turn) => {
        await turn.step('same', (info) => collect(turn, info)).catch(() => null);
        return ['a', 'b'];
      },
      intents: {
        a: async (turn) => {
          await turn.step('same', (info) => collect(turn, info)).catch(() => null);
          await turn.step('same', (info) => collect(turn, info)).catch(() => null);
          if (turn.attempt === 1) throw new Error('once more');
        },
        b: async (turn) => {
          await turn.step('same', (info) => collect(turn, info)).catch(() => null);
        },
      },
    });
    const collect = (turn: TurnContext, info: StepInfo): never => {
      infos.push({ ...info, attempt: turn.attempt, isLive: !info.signal.aborted });
      throw new Error('so that it runs in each attempt');
    };
    const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
    const { id } = await app.handle(desk).execute('hi', { sessionId: await app.session() });

    const keys = [1, 2].map((attempt) => infos.filter((info) => info.attempt === attempt).map(({ key }) => key));
    expect(keys[0]).toHaveLength(4);
    expect(new Set(keys[0]).size).toBe(4);
    // The decision of the route was stored before the next step began, so the route does not run again (FIX-81).
    expect(keys[1]).toEqual(keys[0].slice(1));
    expect(keys[0].every((key) => key.startsWith(id))).toBe(true);
    expect(infos.every(({ isLive }) => isLive)).toBe(true);
    expect(infos.map(({ signal }) => signal.aborted)).toEqual([true, true, true, true, false, false, false]);
  });

  it('BOT-30 steps of the same name in other intents, and in other turns, are other steps', async () => {
    let runs = 0;
    const step = (turn: TurnContext) => turn.step('load', () => `load ${(runs += 1)}`);
    const desk = defineOrchestrator({ name: 'desk', route: () => ['a', 'b'], intents: { a: step, b: step } });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await app.session();
    const first = await app.handle(desk).execute('hi', { sessionId });
    const second = await app.handle(desk).execute('hi', { sessionId });
    expect([first.reply, second.reply]).toEqual(['load 1\n\nload 2', 'load 3\n\nload 4']);
  });

  it('BOT-30 a result may be nothing: it is null in every attempt, and the step does not run again', async () => {
    const seen: unknown[] = [];
    const effects: string[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      seen.push(await turn.step('none', () => void effects.push('none')));
      seen.push(await turn.step('null', () => (effects.push('null'), null)));
      seen.push(await turn.step('false', () => (effects.push('false'), false)));
      if (turn.attempt === 1) throw new Error('once more');
    });
    await say(await app.session());
    expect(seen).toEqual([null, null, false, null, null, false]);
    expect(effects).toEqual(['none', 'null', 'false']);
  });

  it('BOT-30 every attempt sees the result as JSON carries it, the first one too', async () => {
    const seen: unknown[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      const order = { id: 7, note: undefined as string | undefined };
      const result = await turn.step('load', () => order);
      order.id = 8;
      seen.push(result);
      if (turn.attempt === 1) throw new Error('once more');
    });
    await say(await app.session());
    expect(seen).toEqual([{ id: 7 }, { id: 7 }]);
    expect(seen.every((result) => !Object.hasOwn(result as object, 'note'))).toBe(true);
  });

  it('BOT-30 a result that JSON cannot carry is refused with its path, and the turn fails at once', async () => {
    const { app, say } = await startDesk(open, async (turn) => {
      await turn.step('load order', (): unknown => ({ lines: [{ at: new Date(0) }] }));
    });
    const error = await rejection(say(await app.session()), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'STATE_NOT_SERIALIZABLE' });
    expect(error.failure?.details?.path).toBe('The result of step "load order".lines[0].at');
    expect(await app.turns.get(error.turnId)).toMatchObject({ failures: 1 });
  });

  it.each(['', 'x'.repeat(257), 'a\nb', 42])('BOT-30 refuses the step name %p', async (name) => {
    const problems: unknown[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      problems.push(
        await rejection(
          turn.step(name as string, () => 1),
          InvalidInputError,
        ),
      );
    });
    await say(await app.session());
    expect(problems).toMatchObject([{ path: 'step name' }]);
  });

  it('BOT-30 a step of a turn that was cancelled does not begin', async () => {
    const { pass, open: release } = gate();
    const begun = gate();
    const effects: string[] = [];
    let problem: unknown;
    const { app } = await startDesk(open, async (turn) => {
      begun.open();
      await pass();
      await turn.step('late', () => effects.push('late')).catch((error: unknown) => (problem = error));
    });
    const { id } = await app.handle({ name: 'desk' }).submit('hi', { sessionId: await app.session() });
    await begun.pass();
    await app.turns.cancel(id);
    await eventually(async () => (await app.turns.get(id))?.status === 'cancelled');
    release();
    await eventually(() => problem);
    expect(problem).toMatchObject({ code: 'TURN_STOPPED' });
    expect(effects).toEqual([]);
  });
});

describe.each(LASTING_STORES)('steps over a restart, over $name', ({ create }) => {
  it('BOT-30 another process gets what the first one stored, and the key of the step that it had begun', async () => {
    const open = create();
    const effects: string[] = [];
    const keys: string[] = [];
    const { pass, open: release } = gate();
    const answer = (process: string) => async (turn: TurnContext) => {
      const order = await turn.step('load', () => (effects.push(`${process} loads`), { id: 7 }));
      const receipt = await turn.step('pay', async ({ key, signal }) => {
        keys.push(key);
        if (process === 'first') await pass(signal);
        effects.push(`${process} pays`);
        return `paid by ${process}`;
      });
      return reply(`${order.id}: ${receipt}`);
    };
    const first = await startDesk(open, answer('first'));
    const { id } = await first.app.handle({ name: 'desk' }).submit('hi', { sessionId: await first.app.session() });
    await eventually(() => keys.length === 1);
    await first.app.close();
    release();

    const second = await startDesk(open, answer('second'));
    expect(await second.app.turns.result(id)).toMatchObject({ reply: '7: paid by second' });
    expect(effects).toEqual(['first loads', 'second pays']);
    expect(keys).toEqual([keys[0], keys[0]]);
  });
});

const impatient = { retry: { backoff: { type: 'fixed' as const, delayMs: 1 } } };

/** An application whose one intent is `answer`. */
async function startDesk(
  open: (typeof LIVE_STORES)[number]['open'],
  answer: Parameters<typeof defineOrchestrator>[0]['intents'][string],
) {
  const desk = defineOrchestrator({ name: 'desk', intents: { answer } });
  const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
  return { app, say: (sessionId: string) => app.handle(desk).execute('hi', { sessionId }) };
}
