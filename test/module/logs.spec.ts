import {
  defineOrchestrator,
  memoryAdapter,
  OrchestratorEvents,
  reply,
  SessionEvents,
  SessionNotFoundError,
  SessionsConfigurationError,
  type SessionsAdapter,
  SessionsModule,
  SessionStateModule,
  SessionStateService,
  type StateModule,
  type TurnQueue,
} from 'nestjs-agent-sessions';
import { TurnFencedError } from 'nestjs-agent-sessions/adapter';
import { traceOf } from '../../lib/common/error-trace.js';
import { SessionSweeper } from '../../lib/maintenance/session-sweeper.service.js';
import { stateApp } from '../http/state-app.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { turnRequest } from '../support/ledger-requests.js';
import { startApplication } from '../support/running-application.js';
import { inProduction } from '../support/production.js';

inProduction();

const USER = 'ann.of.the.harbour';
const SAID = 'my card is 4000-1234';
const STATE = 'she-owes-seven';
/** An error message of a driver, with a line that looks like a stack frame. */
const SECRET = `connect to postgres://desk:hunter2@db failed\n    at hunter2 (hunter2:1:1)`;

describe('the log (NST-22)', () => {
  it('NST-22 contains no ids, messages, state or secrets, whatever fails', async () => {
    const { lines, logger } = capturingLogger();
    const store = faultyAdapter();
    const memory = {
      recall: () => Promise.resolve([]),
      remember: () => Promise.reject(new Error(`${SAID} ${SECRET}`)),
    };
    const desk = defineOrchestrator<{ owes?: string }>({
      name: 'desk',
      memory,
      compaction: {
        afterTurns: 2,
        keep: 1,
        summarize: () => Promise.reject(new Error(`${SAID} ${SECRET}`)),
      },
      steps: [{ name: 'look', isDefault: true, availableTools: { allowed: ['search'] } }],
      onViolation: 'warn',
      on: { routed: ({ sessionId }) => fail(`${sessionId} ${SECRET}`) },
      intents: {
        answer: async (turn) => {
          if (turn.input.text.includes('fail')) fail(`${turn.id} ${turn.input.text} ${turn.state.owes} ${SECRET}`);
          if (turn.input.text.includes('emit')) await turn.emit({ type: 'note', data: { text: SAID } });
          if (turn.input.text.includes('tool')) await turn.tools.use('pay', turn.id, () => SAID);
          return reply(SAID, { state: { owes: STATE } });
        },
      },
    });
    const { app, handle, turns, sessions } = await startApplication({
      adapter: store.adapter,
      orchestrators: [desk],
      logger,
      imports: [SessionsModule.forFeature({ stateModules: [BrokenModule] })],
      turns: { queue: brokenQueue(), retry: { attempts: 2, backoff: { delayMs: 0 } } },
    });
    app.get(SessionEvents, { strict: false }).on('activated', ({ session }) => fail(`${session.id} ${SECRET}`));
    app.get(OrchestratorEvents, { strict: false }).on('turn-settled', ({ turnId }) => fail(`${turnId} ${SECRET}`));
    const { id: sessionId } = await sessions.create({ userId: USER });
    const say = (text: string): Promise<unknown> =>
      handle(desk).execute(`${SAID} ${text}`, { sessionId, onEvent: ({ type }) => fail(`${type} ${SECRET}`) });
    const told = (what: RegExp): Promise<unknown> =>
      eventually(() => lines.some((line) => what.test(line)), { what: String(what) });

    await say('hello');
    await say('emit');
    await say('tool');
    await say('fail').catch(() => undefined);
    await told(/A listener of turn-settled events threw/);
    await told(/A listener of activated events threw/);
    await told(/A listener of routed events threw/);
    await told(/The memory failed to store turn/);
    await told(/^warn Turn #\w+ of desk failed in attempt 1 \(failures: 1 of 2\)/);
    await told(/^error Turn #\w+ of desk failed in attempt 2 \(failures: 2 of 2\)/);
    await told(/Could not store events of turn #\w+/);
    await told(/Session #\w+: .*pay/);
    await told(/Could not compact session #\w+/);
    await told(/Notifying the queue failed\. Turns are still accepted/);

    // The orchestrator of this turn is not registered here.
    await store.adapter.turns.accept(turnRequest('t-ghost-1', { sessionId, orchestrator: 'ghost' }));
    await told(/waits for orchestrator ghost/);
    await turns.cancel('t-ghost-1');

    store.fail('turns.settle', () => new TurnFencedError(sessionId, 't-1', 7));
    await handle(desk).submit(SAID, { sessionId });
    await told(/is no longer held by this worker/);
    for (const method of ['turns.claim', 'turns.due', 'turns.purgeSettled']) {
      store.fail(method, () => new SessionNotFoundError(sessionId));
    }
    await told(/Could not query the lanes that are due/);
    await handle(desk).submit(SAID, { sessionId: (await sessions.create({ userId: USER })).id });
    await app.get(SessionSweeper, { strict: false }).run();
    await told(/The sweep of idle sessions failed/);
    await app.get(SessionStateService, { strict: false }).describe({ sessionId });
    await told(/The state module broken failed to describe session #/);

    const ids = (await turns.list({ sessionId })).map(({ id }) => id);
    const secrets = ['hunter2', 'postgres:', SAID, '4000-1234', STATE, USER, sessionId, 't-ghost-1', ...ids];
    for (const line of lines) for (const secret of secrets) expect(line).not.toContain(secret);
  });

  it('NST-22 contains no ids or secrets in the lines about HTTP access and failures', async () => {
    const { lines, logger } = capturingLogger();
    const store = faultyAdapter();
    const { app, session, post } = await stateApp({ adapter: store.adapter });
    app.useLogger(logger);
    const { id } = await session({ userId: USER });
    const reset = { sessionId: id, stores: ['tools'] };
    await post('/state/reset', reset, { userId: USER, capabilities: [] }).expect(403);
    store.fail('state.reset', () => new Error(SECRET));
    store.fail('sessions.fetchById', () => new TypeError(`${id} ${SECRET}`));
    await post('/state/reset', reset).expect(500);
    await eventually(() => lines.some((line) => /reset of session #\w+ by user #\w+: failed/.test(line)));
    expect(lines.filter((line) => /^error .*TypeError\n? *(at|,|')/.test(line)).length).toBeGreaterThan(0);
    for (const line of lines) for (const secret of ['hunter2', USER, id]) expect(line).not.toContain(secret);
    await app.close();
  });
});

describe('errors in the log (NST-22)', () => {
  it('NST-22 contain the error’s class, code and stack, and those of its causes', () => {
    const cause = Object.assign(new RangeError(SECRET), { code: 'ECONNREFUSED' });
    expect(traceOf(new SessionNotFoundError('s-1'))).toMatch(
      /^SessionNotFoundError \[SESSION_NOT_FOUND\]\n {4}at .*logs\.spec/,
    );
    class OwnError extends Error {}
    expect(traceOf(new OwnError('x', { cause }))).toMatch(
      /^OwnError\n {4}at .*logs\.spec[^]*\ncaused by RangeError \[ECONNREFUSED\]\n {4}at .*logs\.spec/,
    );
    expect(traceOf(new OwnError('x', { cause }))).not.toContain('hunter2');
  });

  it('NST-22 contain the message of configuration errors', () => {
    expect(traceOf(new SessionsConfigurationError('Add @UseSession() to it.'))).toMatch(
      /^SessionsConfigurationError \[CONFIGURATION\]: Add @UseSession\(\) to it\.\n {4}at /,
    );
  });

  it('NST-22 contain no changed messages, custom names or codes, or values that are not errors', () => {
    const changed = new Error(SECRET);
    expect(changed.stack).toContain('hunter2');
    changed.message = 'another';
    const named = Object.assign(new Error('x'), { name: SECRET, code: SECRET });
    const circular = new Error(SECRET);
    circular.cause = circular;
    for (const error of [changed, named, circular, SECRET, { message: SECRET }, null]) {
      expect(traceOf(error)).not.toContain('hunter2');
    }
    expect(traceOf(SECRET)).toBe('Thrown: string');
    expect(traceOf(changed)).toBe('Error');
  });
});

@SessionStateModule('broken')
class BrokenModule implements StateModule {
  describe(): never {
    return fail(SECRET);
  }

  reset(): never {
    return fail(SECRET);
  }
}

function fail(message: string): never {
  throw new Error(message);
}

/** A local queue that notifies, but then rejects. */
function brokenQueue(): TurnQueue {
  let visit: (sessionId: string) => Promise<void> = async () => {};
  return {
    notify: async (sessionId) => {
      setImmediate(() => void visit(sessionId));
      fail(`${sessionId} redis://:hunter2@db`);
    },
    process: async (handler) => {
      visit = handler;
    },
    pause: async () => {},
    resume: async () => {},
    close: async () => {},
  };
}

/** A store whose methods can be made to fail. It never stores turn events. */
function faultyAdapter(): { adapter: SessionsAdapter; fail: (method: string, error: () => Error) => void } {
  const faults = new Map<string, () => Error>([['events.append', () => new Error(`${SAID} ${SECRET}`)]]);
  const faulty = <T extends object>(target: T, path: string): T =>
    new Proxy(target, {
      get(_, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value === 'object' && value !== null) return faulty(value, `${String(key)}.`);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          const fault = faults.get(`${path}${String(key)}`);
          return fault ? Promise.reject(fault()) : Reflect.apply(value, target, args);
        };
      },
    });
  return { adapter: faulty(memoryAdapter(), ''), fail: (method, error) => void faults.set(method, error) };
}
