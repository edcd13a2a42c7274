import {
  defineOrchestrator,
  memoryAdapter,
  type OrchestratorConfig,
  OrchestratorDriftError,
  PermanentTurnError,
  type SessionsModuleOptions,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { hashed } from '../../lib/common/digests.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { gate, rejection, startApplication } from '../support/running-application.js';
import { inProduction } from '../support/production.js';

inProduction();

const SAID = 'my card is 4000-1234';

describe('what the log says of a handler that throws', () => {
  it('NST-22 TRN-08 logs a warning per retried attempt and an error for the last, with the line of the handler', async () => {
    const { entries, turnId } = await entriesOf({
      answer: ({ input }) => void JSON.parse(`{${input.text}`),
    });
    const attempt = (n: number): string =>
      `Turn ${hashed(turnId)} of desk failed in attempt ${n} \\(failures: ${n} of 3\\) in intent answer`;
    const trace = 'SyntaxError\\n    at JSON\\.parse.*\\n    at .*failure-log\\.spec\\.ts:\\d+';
    expect(entries).toEqual([
      expect.stringMatching(new RegExp(`^warn ${attempt(1)} and is retried in 7 ms\\. Session: #\\w+\\.\\n${trace}`)),
      expect.stringMatching(new RegExp(`^warn ${attempt(2)} and is retried in 7 ms\\. Session: #\\w+\\.\\n${trace}`)),
      expect.stringMatching(
        new RegExp(
          `^error ${attempt(3)}\\. Session: #\\w+\\. The error's message is in the turn's record: turns\\.get\\(id\\)\\. ${trace}`,
        ),
      ),
    ]);
    for (const entry of entries) expect(entry).not.toContain(SAID);
  });

  it('NST-22 the code of an error, and its causes', async () => {
    const { entries } = await entriesOf(
      {
        answer: ({ input }) => {
          const cause = Object.assign(new RangeError(input.text), { code: 'ECONNREFUSED' });
          throw new TypeError(input.text, { cause });
        },
      },
      { attempts: 1 },
    );
    const frames = '\\n    at [^]*failure-log\\.spec\\.ts[^]*';
    expect(entries).toEqual([
      expect.stringMatching(
        new RegExp(`^error .*TypeError${frames}\\ncaused by RangeError \\[ECONNREFUSED\\]${frames}`),
      ),
    ]);
    expect(entries[0]).not.toContain(SAID);
  });

  it('NST-22 TRN-08 logs that a permanent error is not retried', async () => {
    const { entries } = await entriesOf({
      answer: ({ input }) => {
        throw new PermanentTurnError(input.text);
      },
    });
    expect(entries).toEqual([
      expect.stringMatching(
        /^error .* in attempt 1 \(failures: 1 of 3\) in intent answer, with an error that is not retried\. .*PermanentTurnError \[PERMANENT_TURN_ERROR\]\n.*failure-log\.spec\.ts/s,
      ),
    ]);
    expect(entries[0]).not.toContain(SAID);
  });

  it('NST-22 AIS-03 warns of a failure that is the result of its tool call, once', async () => {
    const { entries, turnId } = await entriesOf(
      {
        answer: async (turn) => {
          const work = (): never => {
            throw new RangeError(turn.input.text);
          };
          await turn.tools.use('find', 'call', work, { storeFailure: true }).catch(() => undefined);
          if (turn.attempt === 1) throw new Error(turn.input.text);
          throw new PermanentTurnError(turn.input.text);
        },
      },
      { attempts: 2 },
    );
    expect(entries).toEqual([
      expect.stringMatching(
        new RegExp(
          `^warn Tool "find" failed in turn ${hashed(turnId)}\\. The turn continues: .*\nRangeError\n    at .*failure-log\\.spec\\.ts`,
        ),
      ),
      expect.stringMatching(/^warn Turn .* is retried/),
      expect.stringMatching(/^error Turn .* failed in attempt 2 /),
    ]);
    for (const entry of entries) expect(entry).not.toContain(SAID);
  });

  it.each<[string, (turn: TurnContext<{ n: number; list: number[] }>) => unknown]>([
    ['sets a key', ({ state }) => Object.assign(state, { n: 2 })],
    ['adds a key', ({ state }) => Object.assign(state, { other: 2 })],
    ['deletes a key', ({ state }) => Reflect.get(state, 'n') === 1 && delete (state as { n?: number }).n],
    ['changes a list', ({ state }) => state.list.push(1)],
    ['replaces the state', (turn) => Object.assign(turn, { state: { n: 2 } })],
  ])('DAY-02 says that the state is read-only to a handler that %s', async (_, change) => {
    const desk = defineOrchestrator<{ n: number; list: number[] }>({
      name: 'desk',
      initialState: () => ({ n: 1, list: [] }),
      intents: { answer: (turn) => void change(turn) },
    });
    const { lines, logger } = capturingLogger();
    const turns = { retry: { attempts: 1 } };
    const app = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk], logger, turns });
    await rejection(app.handle(desk).execute(SAID, { sessionId: await app.session() }), TurnFailedError);
    await app.close();
    expect(lines.filter((line) => line.startsWith('error '))).toEqual([
      expect.stringMatching(/TypeError\nA turn and its state are read-only\. .*return the change.*\n {4}at /s),
    ]);
  });

  it('NST-22 TRN-09 names the limit that an attempt ran into', async () => {
    const never = gate();
    const { entries } = await entriesOf({ answer: () => never.pass() }, { attempts: 1, timeoutMs: 30 });
    expect(entries).toEqual([
      expect.stringContaining('TurnTimeoutError [TURN_TIMEOUT]: The attempt exceeded turns.timeoutMs (30 ms).'),
    ]);
  });

  it('NST-22 BOT-03 says what is wrong with a result, but not what it was', async () => {
    const wrong = await entriesOf({ answer: ({ input }) => [input.text] as never });
    expect(wrong.entries).toEqual([
      expect.stringContaining(
        'HandlerError [ORCHESTRATOR_RESULT]: Orchestrator desk: intent answer returned an array.',
      ),
    ]);
    const unknown = await entriesOf({ answer: () => 'ok' }, {}, ({ input }) => input.text);
    const chosen: unknown = expect.stringContaining(
      'the route chose an intent that orchestrator desk does not have. It has: answer.',
    );
    expect(unknown.entries).toEqual([chosen]);
    for (const entry of [...wrong.entries, ...unknown.entries]) expect(entry).not.toContain(SAID);
  });

  it('NST-22 BOT-23 says how an orchestrator differs from the one that wrote the checkpoint, and what to do', async () => {
    const adapter = memoryAdapter();
    const intents = { answer: () => 'ok' };
    const first = defineOrchestrator({ name: 'desk', intents });
    const before = await startApplication({ adapter, orchestrators: [first] });
    const sessionId = await before.session();
    await before.handle(first).execute(SAID, { sessionId });
    await before.close();

    const more = { reply: () => 'ok', refund: () => 'ok' };
    const told = async (changed: Partial<OrchestratorConfig>): Promise<string> => {
      const desk = defineOrchestrator({ name: 'desk', intents: more, route: () => 'refund', ...changed });
      const { lines, logger } = capturingLogger();
      const { handle, close } = await startApplication({ adapter, orchestrators: [desk], logger });
      await rejection(handle(desk).execute(SAID, { sessionId }), OrchestratorDriftError);
      await close();
      const entries = lines.filter((line) => /^(warn|error) /.test(line));
      expect(entries).toHaveLength(1);
      return entries[0];
    };
    const sameVersion = await told({});
    expect(sameVersion).toMatch(
      /^error .*OrchestratorDriftError \[ORCHESTRATOR_DRIFT\]: Orchestrator desk: .* by another structure \(intents, .*but the version is still 1\. Set a new version and add a migration\. During development, start new sessions or use force: true\. Intents that were removed or renamed: answer\. If the state does not change, set these options of desk: version: '2', migrations: \[\{ from: '1', to: '2', migrate: \(state\) => state \}\],\n/,
    );
    const newVersion = await told({ version: '2' });
    expect(newVersion).toMatch(
      /by version 1, with another structure \(.*\)\. Add a migration\. During development.* set these options of desk: version: '2', migrations: \[\{ from: '1', to: '2', migrate: \(state\) => state \}\],/,
    );
    for (const line of [sameVersion, newVersion])
      for (const secret of [SAID, sessionId]) expect(line).not.toContain(secret);
  });

  it('NST-22 TRN-09 TRN-14 nothing of a turn that was cancelled, or given back as the process stops', async () => {
    const { lines, logger } = capturingLogger();
    let begun = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ signal }) => {
          begun.open();
          return gate().pass(signal);
        },
      },
    });
    const { handle, session, turns, close } = await startApplication({ orchestrators: [desk], logger });
    const cancelled = await handle(desk).submit('hi', { sessionId: await session() });
    await begun.pass();
    await turns.cancel(cancelled.id);
    await turns.result(cancelled.id).catch(() => undefined);
    begun = gate();
    await handle(desk).submit('hi', { sessionId: await session() });
    await begun.pass();
    await close();
    expect(lines.filter((line) => /^(warn|error) .*failed/.test(line))).toEqual([]);
  });
});

/** The warnings and errors that a turn leaves which fails for good. */
async function entriesOf(
  intents: Parameters<typeof defineOrchestrator>[0]['intents'],
  { attempts = 3, timeoutMs }: { attempts?: number; timeoutMs?: number } = {},
  route?: Parameters<typeof defineOrchestrator>[0]['route'],
): Promise<{ entries: string[]; turnId: string }> {
  const { lines, logger } = capturingLogger();
  const desk = defineOrchestrator({ name: 'desk', intents, ...(route ? { route } : {}) });
  const turns: SessionsModuleOptions['turns'] = {
    retry: { attempts, backoff: { type: 'fixed', delayMs: 7 } },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  const { handle, session, close } = await startApplication({
    adapter: memoryAdapter(),
    orchestrators: [desk],
    logger,
    turns,
  });
  const failed = await rejection(handle(desk).execute(SAID, { sessionId: await session() }), TurnFailedError);
  await close();
  return { entries: lines.filter((line) => /^(warn|error) /.test(line)), turnId: failed.turnId };
}
