import { defineOrchestrator, END_TURN, reply, TurnFailedError } from 'nestjs-agent-sessions';
import { traceOf } from '../../lib/common/error-trace.js';
import { isPermanent, retryAfterMs, toErrorRecord } from '../../lib/ledger/turn-error-record.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

function refuse(): never {
  throw new Error('A trap or getter was called.');
}

const getter = { get: refuse, enumerable: true };
const everyTrap = new Proxy({}, { get: () => refuse });
// The stack first: V8 reads the name and the message when it is replaced.
const FIELDS = ['stack', 'name', 'message', 'code', 'cause', 'permanent', 'retryAfterMs', 'lastError', 'constructor'];
const withGetters = (target: object): object =>
  Object.defineProperties(target, Object.fromEntries(FIELDS.map((field) => [field, getter])));

/** Values that a handler can throw. */
const THROWN: Readonly<Record<string, () => unknown>> = {
  'a proxy whose traps throw': () => new Proxy({}, everyTrap),
  'a proxy of an error whose traps throw': () => new Proxy(new Error('inside'), everyTrap),
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  'an object with a proxy as prototype': () => Object.create(new Proxy({}, everyTrap)) as object,
  'an object whose getters throw': () => withGetters({}),
  'an error whose getters throw': () => withGetters(new Error()),
  'an error with a proxy as cause': () => new Error('outer', { cause: new Proxy({}, everyTrap) }),
  'an error without a class': () => Object.defineProperty(new Error('x'), 'constructor', { value: null }),
  'an object without a prototype': () => Object.create(null) as object,
  'an object whose toString throws': () => ({ toString: refuse, [Symbol.toPrimitive]: refuse }),
  'a symbol': () => Symbol('thrown'),
  'a function': () => refuse,
  nothing: () => undefined,
};

describe('values that cannot be read', () => {
  it.each(Object.entries(THROWN))('FIX-91 reads %s as an error record and as a log entry', (_, create) => {
    const thrown = create();
    const { name, message } = toErrorRecord(thrown);
    expect([typeof name, typeof message, typeof traceOf(thrown)]).toEqual(['string', 'string', 'string']);
    expect([isPermanent(thrown), retryAfterMs(thrown)]).toEqual([false, 0]);
  });
});

describe('the log of a handler that throws a value that cannot be read', () => {
  it.each(Object.entries(THROWN))('FIX-91 NST-22 names the intent and the step that threw %s', async (_, create) => {
    const { lines, logger } = capturingLogger();
    const throws = (): never => {
      throw create() as Error;
    };
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: (turn) => (turn.input.text === 'step' ? turn.step('pay', throws) : throws()) },
    });
    const app = await startApplication({ orchestrators: [desk], logger, turns: { retry: { attempts: 1 } } });
    for (const text of ['intent', 'step'])
      await rejection(app.handle(desk).execute(text, { sessionId: await app.session() }), TurnFailedError);
    // The value identifies the step that threw it. `undefined` identifies none.
    const step = create() === undefined ? '' : ', step pay';
    expect(lines.filter((line) => line.startsWith('error '))).toEqual([
      expect.stringContaining(' in intent answer'),
      expect.stringContaining(` in intent answer${step}`),
    ]);
  });
});

describe.each(LIVE_STORES)('hostile errors over $name', ({ open }) => {
  it.each(Object.entries(THROWN))(
    'FIX-91 fails the turn of a handler that throws %s, and runs the next',
    async (_, create) => {
      const desk = defineOrchestrator({
        name: 'desk',
        route: ({ input }) => {
          if (input.text === 'route') throw create() as Error;
          return input.text === 'end' ? END_TURN : 'answer';
        },
        intents: {
          answer: async (turn) => {
            const work = (): never => {
              throw create() as Error;
            };
            if (turn.input.text === 'step') await turn.step('step', work);
            if (turn.input.text === 'tool') await turn.tools.use('tool', 'call', work);
            if (turn.input.text === 'stored failure')
              await turn.tools.use('tool', 'call', work, { storeFailure: true });
            if (turn.input.text === 'handler') work();
            if (turn.input.text === 'promise') await Promise.resolve().then(work);
            return reply('fine');
          },
        },
      });
      const app = await startApplication({
        adapter: open(),
        orchestrators: [desk],
        turns: { retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } },
      });
      const sessionId = await app.session();
      for (const place of ['route', 'step', 'tool', 'stored failure', 'handler', 'promise']) {
        const error = await rejection(app.handle(desk).execute(place, { sessionId }), TurnFailedError);
        expect([place, await app.turns.get(error.turnId)]).toMatchObject([place, { failures: 2, lost: 0 }]);
      }
      expect(await app.handle(desk).execute('fine', { sessionId })).toMatchObject({ reply: 'fine' });
    },
  );
});
