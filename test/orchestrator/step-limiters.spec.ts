import { AsyncResource } from 'node:async_hooks';
import fastq from 'fastq';
import pLimit from 'p-limit';
import {
  defineOrchestrator,
  HandlerError,
  reply,
  type StepInfo,
  type TurnContext,
  TurnFailedError,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';

const impatient = { retry: { backoff: { type: 'fixed' as const, delayMs: 1 } } };

type Task = () => Promise<string>;
type Limiter = (task: Task) => Promise<string>;

/** Limiters that run one task at a time. Each starts a task in the asynchronous context of the task before it. */
const LIMITERS: Readonly<Record<string, () => Limiter>> = {
  fastq: () => {
    const queue = fastq.promise((task: Task) => task(), 1);
    return (task) => queue.push(task);
  },
  'p-limit': () => pLimit(1),
  'a pool with callbacks': () => {
    const waiting: (() => void)[] = [];
    let isBusy = false;
    const run = async (task: Task, done: (result: Promise<string>) => void): Promise<void> => {
      isBusy = true;
      const result = task();
      await result.catch(() => undefined);
      isBusy = false;
      done(result);
      waiting.shift()?.();
    };
    return (task) =>
      new Promise((resolve) => {
        const begin = (): void => void run(task, resolve);
        if (isBusy) waiting.push(begin);
        else begin();
      });
  },
};

/** A limiter that starts tasks outside of the turn that they belong to. */
interface Elsewhere {
  readonly name: string;
  readonly create: () => Limiter;
  /** How an error describes the context in which it starts them. */
  readonly context: string;
}

const ELSEWHERE: readonly Elsewhere[] = [
  { name: 'a pool started outside of turns', create: startPool, context: 'code outside of turns' },
  ...Object.entries(LIMITERS).map(([name, create]) => ({
    name: `${name} busy with another turn's handler`,
    create,
    context: "another turn's handler",
  })),
];

/** How a step is called in a task of the limiter, inside a tool call. */
type CallStep = (turn: TurnContext, info: StepInfo, charge: (info: StepInfo) => Promise<string>) => Task;

const implicit: CallStep = (turn, _, charge) => () => turn.step('charge', charge);
const CURES: Readonly<Record<string, CallStep>> = {
  'info.step': (_turn, info, charge) => () => info.step('charge', charge),
  'AsyncResource.bind': (turn, _, charge) => AsyncResource.bind(() => turn.step('charge', charge)),
};

const ORDERS = ['c1', 'c2', 'c3'];

describe.each(SAMPLED_STORES)('steps in limiters over $name', ({ open }) => {
  describe.each(Object.entries(LIMITERS))('%s', (_, create) => {
    it.each(Object.entries(CURES))(
      'FIX-82 gives each step its own scope with %s, across attempts',
      async (_cure, call) => {
        const { app, charged } = await desk(create(), call);
        const result = await app.handle({ name: 'desk' }).execute('hi', { sessionId: await app.session() });
        expect(result.reply).toBe('charge c1, charge c2, charge c3');
        expect(charged.map(({ order }) => order).sort()).toEqual(ORDERS);
        expect(new Set(charged.map(({ key }) => key)).size).toBe(3);
      },
    );

    it('FIX-82 refuses a step in the context of a call that has ended, before it runs', async () => {
      const { app, charged } = await desk(create(), implicit);
      const error = await app
        .handle({ name: 'desk' })
        .execute('hi', { sessionId: await app.session() })
        .then(
          () => null,
          ({ failure }: { failure: object }) => failure,
        );
      expect(error).toMatchObject({ name: 'HandlerError', code: 'STEP_CONTEXT' });
      expect((error as Error).message).toBe(
        'Step "charge" runs in the asynchronous context of tool "c1", so its own step or tool call is unknown. A limiter or ' +
          'pool has started the code there. Give it AsyncResource.bind(task), or call `info.step` instead of `turn.step`.',
      );
      expect(charged.map(({ order }) => order)).toEqual(['c1']);
    });
  });

  describe.each(ELSEWHERE)('$name', ({ create, context }) => {
    it.each(Object.entries(CURES))(
      'FIX-82 gives each step its own scope with %s, across attempts',
      async (_cure, call) => {
        const { charged, executeBehindAnother } = await desk(create(), call);
        const { reply: paid } = await executeBehindAnother();
        expect(paid).toBe('charge c1, charge c2, charge c3');
        expect(charged.map(({ order }) => order).sort()).toEqual(ORDERS);
        expect(new Set(charged.map(({ key }) => key)).size).toBe(3);
      },
    );

    it('FIX-82 refuses a step while its call is open, before it runs', async () => {
      const { charged, executeBehindAnother } = await desk(create(), implicit);
      const { failure } = await rejection(executeBehindAnother(), TurnFailedError);
      expect(failure).toMatchObject({ name: 'HandlerError', code: 'STEP_CONTEXT' });
      expect(failure?.message).toContain(`Step "charge" runs in the asynchronous context of ${context}, so its own`);
      expect(charged).toEqual([]);
    });
  });

  it('FIX-82 counts a step that runs outside of turns as one of the handler, unless a call is open', async () => {
    const outside = AsyncResource.bind((task: () => Promise<unknown>) => task());
    const errors: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          await turn.step('open', async () => {
            errors.push(await outside(() => turn.step('refused', () => 1)).catch((error: unknown) => error));
          });
          const fail = (): string => {
            throw new Error('down');
          };
          await turn.step('failed', fail).catch(() => undefined);
          await outside(() => turn.step('alone', () => 1));
          return reply('done');
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect(errors).toEqual([expect.any(HandlerError)]);
    const stored = await app.adapter.turns.steps(id);
    expect(stored.map(({ parent, name }) => `${parent}/${name}`).sort()).toEqual(['/alone', '/open']);
  });

  it('FIX-82 accepts a tool call that runs outside of turns while another one is open', async () => {
    const outside = AsyncResource.bind((task: () => Promise<string>) => task());
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          const first = gate();
          const second = gate();
          const paid = await Promise.all([
            turn.tools.use('pay', 'c1', async () => {
              first.open();
              await second.pass(turn.signal);
              return 'c1';
            }),
            first.pass().then(() => outside(() => turn.tools.use('pay', 'c2', () => 'c2').finally(second.open))),
          ]);
          return reply(paid.join());
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const result = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'c1,c2' });
  });

  it('FIX-82 refuses a step in the context of a call of another turn, and continues outside of calls', async () => {
    const errors: unknown[] = [];
    let enter: ((task: () => void) => void) | undefined;
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          if (turn.input.text === 'holds') {
            await turn.step('hold', async () => {
              enter = AsyncResource.bind((task: () => void) => task());
              await held;
            });
            return reply('held');
          }
          const run = (task: Task): Promise<string> =>
            new Promise((resolve, reject) => enter?.(() => void task().then(resolve, reject)));
          errors.push(await run(() => turn.step('outside', () => 'x')).catch((error: unknown) => error));
          errors.push(await turn.step('own', () => 'own'));
          release();
          return reply('done');
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const first = app.handle(desk).execute('holds', { sessionId: await app.session() });
    await eventually(() => enter !== undefined);
    await app.handle(desk).execute('other', { sessionId: await app.session() });
    expect(await first).toMatchObject({ reply: 'held' });
    expect(errors).toEqual([expect.any(HandlerError), 'own']);
  });

  it('FIX-82 refuses info.step and turn.step that a call has left running', async () => {
    const errors: unknown[] = [];
    const note = (error: unknown): unknown => errors.push(error);
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          let later!: Promise<unknown>;
          let kept!: StepInfo;
          await turn.step('outer', (info) => {
            kept = info;
            later = new Promise((resolve) => setTimeout(resolve, 1)).then(() => turn.step('late', () => 1)).catch(note);
          });
          await later;
          await kept.step('late', () => 1).catch(note);
          return reply('done');
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect(errors).toEqual([expect.any(HandlerError), expect.any(HandlerError)]);
    expect((await app.adapter.turns.steps(id)).map(({ name }) => name)).toEqual(['outer']);
  });

  it('FIX-82 stores info.step and turn.step of one call under it, and replays both', async () => {
    const effects: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          const seen = await turn.step('outer', async (info) => {
            const inner = [
              await info.step('a', () => effects.push('a')),
              await turn.step('a', () => effects.push('b')),
              await info.step('keyed', ({ step }) => step('deep', () => effects.push('deep')), { key: 'k' }),
            ];
            if (turn.attempt === 1) throw new Error('once more');
            return inner;
          });
          return reply(seen.join());
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
    expect(await app.handle(desk).execute('hi', { sessionId: await app.session() })).toMatchObject({ reply: '1,2,3' });
    expect(effects).toEqual(['a', 'b', 'deep']);
  });

  /** An application whose tool calls charge orders in the tasks of a limiter. The first attempt fails after order c2. */
  async function desk(limit: Limiter, call: CallStep): Promise<Desk> {
    const charged: Charge[] = [];
    const held = gate();
    let given = 0;
    const give: Limiter = (task) => {
      given += 1;
      return limit(task);
    };
    const definition = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          if (turn.input.text === 'hold') return reply(await give(() => held.pass().then(() => 'held')));
          const pay = (order: string): Promise<string> =>
            turn.tools.use('pay', order, async (info) => {
              const charge = async ({ key }: StepInfo): Promise<string> => {
                await new Promise((resolve) => setTimeout(resolve, 2));
                charged.push({ order, key });
                return `charge ${order}`;
              };
              const receipt = await give(call(turn, info, charge));
              if (turn.attempt === 1 && order === 'c2') throw new Error('crash');
              return receipt;
            });
          const paid = await Promise.allSettled(ORDERS.map(pay));
          const failed = paid.find((each) => each.status === 'rejected');
          if (failed) throw failed.reason;
          return reply(paid.map((each) => (each as PromiseFulfilledResult<string>).value).join(', '));
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [definition], turns: impatient });
    const execute = async (text: string): Promise<TurnResult> =>
      app.handle(definition).execute(text, { sessionId: await app.session() });
    const executeBehindAnother = async (): Promise<TurnResult> => {
      const holder = execute('hold');
      await eventually(() => given === 1);
      const both = Promise.all([execute('hi'), holder]);
      await eventually(() => given === 1 + ORDERS.length);
      held.open();
      const [result] = await both;
      return result;
    };
    return { app, charged, executeBehindAnother };
  }
});

/** Starts a pool of one worker, which runs all tasks in the context of this call. */
function startPool(): Limiter {
  const tasks: (() => Promise<void>)[] = [];
  let wake = (): void => {};
  const work = async (): Promise<void> => {
    for (;;) {
      await tasks.shift()?.();
      if (tasks.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  void work();
  return (task) =>
    new Promise((resolve, reject) => {
      tasks.push(() => task().then(resolve, reject));
      wake();
    });
}

interface Desk {
  readonly app: Application;
  readonly charged: readonly Charge[];
  /** Executes a turn whose tasks wait until the limiter has run a task of another turn's handler. */
  readonly executeBehindAnother: () => Promise<TurnResult>;
}

interface Charge {
  readonly order: string;
  readonly key: string;
}
