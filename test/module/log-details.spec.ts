import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  type SessionsModuleOptions,
  StateSerializationError,
  StoreRejectedError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { traceOf } from '../../lib/common/error-trace.js';
import { logDetails } from '../../lib/common/log-details.js';
import { hashed } from '../../lib/common/digests.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const NODE_ENV = process.env.NODE_ENV;
const SAID = 'my card is 4000-1234';
const OF_PACKAGE = /\n {4}at .*\/lib\//;

const IN_PRODUCTION: readonly (readonly [SessionsModuleOptions['logging'], string])[] = [
  [undefined, 'messages hidden, ids hidden'],
  [{ ids: true }, 'messages hidden, ids shown'],
  [{ messages: true }, 'messages shown, ids hidden'],
  [{ messages: true, ids: true }, 'messages shown, ids shown'],
];

const desk = defineOrchestrator({
  name: 'desk',
  intents: {
    answer: (turn) =>
      turn.step('pay', () => {
        throw new TypeError(`refused: ${turn.input.text}`, { cause: new RangeError('no funds') });
      }),
  },
});

afterEach(() => {
  process.env.NODE_ENV = NODE_ENV;
});

describe.each(LIVE_STORES)('the log of a failed turn, with $name', ({ open }) => {
  /** The entries of a turn that fails, with its ids. */
  async function failedTurn(logging?: SessionsModuleOptions['logging']) {
    const { lines, logger } = capturingLogger();
    const { handle, session, close } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      logger,
      turns: { retry: { attempts: 1 } },
      ...(logging ? { logging } : {}),
    });
    const sessionId = await session();
    const { turnId } = await rejection(handle(desk).execute(SAID, { sessionId }), TurnFailedError);
    await close();
    const [entry] = lines.filter((line) => line.startsWith('error Turn '));
    return { entry, sessionId, turnId, modes: lines.filter((line) => line.includes(' Logs: ')) };
  }

  it.each(['development', 'test', undefined])(
    'DAY-02 shows messages, ids and the own stack if NODE_ENV is %s',
    async (env) => {
      if (env === undefined) delete process.env.NODE_ENV;
      else process.env.NODE_ENV = env;
      const { entry, sessionId, turnId, modes } = await failedTurn();
      expect(entry).toContain(`error Turn ${turnId} of desk failed`);
      expect(entry).toContain(`Session: ${sessionId}.`);
      expect(entry).toMatch(/TypeError: refused: my card is 4000-1234\n {4}at .*log-details\.spec\.ts:\d+/);
      expect(entry).toMatch(/\ncaused by RangeError: no funds\n {4}at .*log-details\.spec\.ts:\d+/);
      expect(entry).not.toMatch(OF_PACKAGE);
      expect(entry).not.toContain('turns.get(id)');
      expect(modes).toEqual([expect.stringContaining('Logs: messages shown, ids shown.')]);
    },
  );

  it.each(IN_PRODUCTION)(
    'DAY-02 hides messages and ids in production, except with logging: %j',
    async (logging, mode) => {
      process.env.NODE_ENV = 'production';
      const { entry, sessionId, turnId, modes } = await failedTurn(logging);
      const id = (value: string): string => (logging?.ids ? value : hashed(value));
      expect(entry).toContain(`error Turn ${id(turnId)} of desk failed`);
      expect(entry).toContain(`Session: ${id(sessionId)}.`);
      expect(entry.includes(SAID)).toBe(logging?.messages === true);
      expect(entry.includes('turns.get(id)')).toBe(logging?.messages !== true);
      expect(modes).toEqual([expect.stringContaining(`Logs: ${mode}.`)]);
    },
  );

  it('DAY-02 hides messages and ids outside production if the option says so', async () => {
    const { entry, sessionId, turnId } = await failedTurn({ messages: false, ids: false });
    for (const hidden of [SAID, sessionId, turnId]) expect(entry).not.toContain(hidden);
    expect(entry).toContain(hashed(sessionId));
  });
});

describe('the details that logs show', () => {
  it('DAY-02 are those that every running application of the process allows', async () => {
    process.env.NODE_ENV = 'production';
    const open = { adapter: memoryAdapter(), logging: { messages: true, ids: true } };
    const first = await startApplication(open);
    expect(logDetails()).toEqual({ messages: true, ids: true });
    const second = await startApplication({ adapter: memoryAdapter(), logging: { ids: true } });
    expect(logDetails()).toEqual({ messages: false, ids: true });
    await second.close();
    expect(logDetails()).toEqual({ messages: true, ids: true });
    await first.close();
    expect(logDetails()).toEqual({ messages: false, ids: false });
  });

  it('DAY-02 include the cure of an error once', () => {
    expect(traceOf(new StoreRejectedError('The value is too long.', 'Shorten it.'))).toMatch(
      /^StoreRejectedError \[STORE_REJECTED\]: The value is too long\. Shorten it\.(\n {4}at .*)*$/,
    );
    const error = Object.assign(new Error('No connection.'), { cure: 'Start the server.' });
    expect(traceOf(error)).toMatch(/^Error: No connection\.\nStart the server\.\n {4}at /);
  });

  it('DAY-02 include the frames of a call that passed a wrong value, but none of this package', () => {
    const trace = traceOf(new InvalidInputError('userId', 'must be a string.'));
    expect(trace).toMatch(
      /^InvalidInputError \[INVALID_INPUT\]: userId must be a string\.\n {4}at .*log-details\.spec/,
    );
    expect(traceOf(new StateSerializationError('state.at', 'an instance of Date'))).not.toMatch(OF_PACKAGE);
  });

  it('DAY-02 include values that are not errors', () => {
    expect(traceOf('no')).toBe("Thrown: 'no'");
    expect(traceOf(undefined)).toBe('Thrown: undefined');
    expect(traceOf({ message: 'no' })).toBe('Error: no');
    expect(traceOf(() => 'no')).toBe('Thrown: function');
  });
});
