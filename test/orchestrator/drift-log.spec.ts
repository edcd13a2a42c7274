import {
  defineOrchestrator,
  type OrchestratorConfig,
  OrchestratorDriftError,
  reply,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { inProduction } from '../support/production.js';
import { LASTING_STORES, rejection, startApplication } from '../support/running-application.js';

const intents = { answer: () => 'ok' };

describe.each(LASTING_STORES)('the log of a turn that fails because of drift, with $name', ({ create }) => {
  /** Runs a turn of the first orchestrator, and one of the second in the same session. */
  async function drift(saved: Partial<OrchestratorConfig>, changed: Partial<OrchestratorConfig>) {
    const open = create();
    const first = defineOrchestrator({ name: 'desk', intents, ...saved });
    const before = await startApplication({ adapter: open(), orchestrators: [first] });
    const sessionId = await before.session();
    await before.handle(first).execute('hi', { sessionId });
    await before.close();

    const desk = defineOrchestrator({ name: 'desk', intents: { reply: () => 'ok' }, ...changed });
    const { lines, logger } = capturingLogger();
    const { handle, close } = await startApplication({ adapter: open(), orchestrators: [desk], logger });
    const error = await rejection(handle(desk).execute('hi', { sessionId }), OrchestratorDriftError);
    await close();
    // The start warns about the settings of a server.
    return { error, sessionId, entries: lines.filter((line) => /^(warn|error) (?!Redis: )/.test(line)) };
  }

  it('DAY-08 has one entry, which ends with the two options that cure it', async () => {
    const { entries, error, sessionId } = await drift({}, {});
    const cure =
      'If the state does not change, set these options of desk:\n' +
      "  version: '2',\n" +
      "  migrations: [{ from: '1', to: '2', migrate: (state) => state }],";
    expect(entries).toHaveLength(1);
    expect(entries[0]).toContain(`Session: ${sessionId}.`);
    expect(entries[0]).toContain('but the version is still 1. Set a new version and add a migration.');
    expect(entries[0]).toContain(`Intents that were removed or renamed: answer.\n${cure}`);
    expect(error.cure).toBe(cure);
  });

  it.each([
    ['1.9', '1.9', "version: '1.10',", "from: '1.9', to: '1.10'"],
    ['2026-09', '2026-10', "version: '2026-10',", "from: '2026-09', to: '2026-10'"],
    ['2026-08', '2026-08', "version: '2026-09',", "from: '2026-08', to: '2026-09'"],
    ['beta', 'beta', "version: 'beta2',", "from: 'beta', to: 'beta2'"],
  ])('DAY-08 leads from version %s, with the code at %s', async (saved, current, version, migration) => {
    const { error } = await drift({ version: saved }, { version: current });
    expect(error.cure).toContain(`  ${version}\n  migrations: [{ ${migration}, migrate: (state) => state }],`);
  });

  it('DAY-08 continues the sessions with the two options', async () => {
    const migrations = [{ from: '1', to: '2', migrate: (state: object) => state }];
    const open = create();
    const first = defineOrchestrator({ name: 'desk', intents });
    const before = await startApplication({ adapter: open(), orchestrators: [first] });
    const sessionId = await before.session();
    await before.handle(first).execute('hi', { sessionId });
    await before.close();
    const desk = defineOrchestrator({ name: 'desk', version: '2', migrations, intents: { reply: () => 'cured' } });
    const { handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('hi', { sessionId })).toMatchObject({ reply: 'cured', turnIndex: 1 });
  });
});

describe.each(LASTING_STORES)('the log of a turn whose state has another shape, with $name', ({ create }) => {
  const ADVICE =
    'The stored state lacks keys of initialState: orders, tags. If earlier code of desk has written it, set a higher ' +
    "version than 1, and add a migration that sets them, such as migrations: [{ from: '1', to: '...', migrate: " +
    '(state) => ({ ...state, orders: ... }) }].';

  /** Runs a turn of a desk with `visits`. */
  async function visited(): Promise<{ open: ReturnType<typeof create>; sessionId: string }> {
    const open = create();
    const first = defineOrchestrator({ name: 'desk', intents: { answer: () => ({ visits: 1 }) } });
    const before = await startApplication({ adapter: open(), orchestrators: [first] });
    const sessionId = await before.session();
    await before.handle(first).execute('hi', { sessionId });
    await before.close();
    return { open, sessionId };
  }

  /** Runs a turn of a desk with `visits`, and one of a desk that reads `orders`, under the same version. */
  async function changed(
    initialState: () => object,
    answer: (turn: TurnContext) => unknown = ({ state }) => reply(`${(state.orders as string[]).length} orders`),
  ): Promise<string[]> {
    const { open, sessionId } = await visited();
    const desk = defineOrchestrator({ name: 'desk', initialState, intents: { answer: answer as () => string } });
    const { lines, logger } = capturingLogger();
    const turns = { retry: { attempts: 1 } };
    const { handle, session, close } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      logger,
      turns,
    });
    await rejection(handle(desk).execute('hi', { sessionId }), TurnFailedError);
    // A new session has the initial state.
    await handle(desk)
      .execute('hi', { sessionId: await session() })
      .catch(() => undefined);
    await close();
    return lines.filter((line) => /^(warn|error) Turn /.test(line));
  }

  it('DAY-02 names the keys that the stored state lacks', async () => {
    const entries = await changed(() => ({ visits: 0, orders: [], tags: [], note: undefined }));
    expect(entries).toEqual([expect.stringContaining('TypeError: Cannot read properties of undefined')]);
    expect(entries[0]).toContain(`(reading 'length')\n${ADVICE}\n    at `);
  });

  it('DAY-02 names the keys that have another type in the stored state', async () => {
    const initialState = () => ({ visits: { count: 0 } });
    const [entry, ...others] = await changed(initialState, ({ state }) => {
      const { count } = state.visits as { count: { valueOf(): number } };
      return { visits: { count: count.valueOf() + 1 } };
    });
    expect(others).toEqual([]);
    expect(entry).toContain(
      'The stored state has keys of another type than initialState: visits. If earlier code of desk has written it, set a ' +
        "higher version than 1, and add a migration that sets them, such as migrations: [{ from: '1', to: '...', migrate: " +
        '(state) => ({ ...state, visits: ... }) }].',
    );
  });

  it('DAY-17 names them once if the handler only shows one', async () => {
    const { open, sessionId } = await visited();
    const desk = defineOrchestrator({
      name: 'desk',
      initialState: () => ({ visits: 0, orders: [], tags: [] }),
      intents: { answer: ({ state }) => reply(`Your orders: ${String(state.orders)}`) },
    });
    const { lines, logger } = capturingLogger();
    const { handle, close } = await startApplication({ adapter: open(), orchestrators: [desk], logger });
    for (const text of ['one', 'two']) {
      expect((await handle(desk).execute(text, { sessionId })).reply).toBe('Your orders: undefined');
    }
    await close();
    expect(lines.filter((line) => line.endsWith(' Orchestrator'))).toEqual([`warn ${ADVICE} Orchestrator`]);
  });

  it('DAY-17 names the version that has written the state, if the version is higher now', async () => {
    const { open, sessionId } = await visited();
    const desk = defineOrchestrator({
      name: 'desk',
      version: '2',
      initialState: () => ({ visits: 0, orders: [] }),
      intents: { answer: () => reply('hi') },
    });
    const { lines, logger } = capturingLogger();
    const { handle, close } = await startApplication({ adapter: open(), orchestrators: [desk], logger });
    await handle(desk).execute('hi', { sessionId });
    await close();
    expect(lines.filter((line) => line.endsWith(' Orchestrator'))).toEqual([
      'warn The stored state, of version 1 of desk, lacks keys of initialState: orders. Add a migration that sets them, ' +
        "such as migrations: [{ from: '1', to: '2', migrate: (state) => ({ ...state, orders: ... }) }]. Orchestrator",
    ]);
  });

  it('DAY-02 names them also if the handler calculates with one', async () => {
    const [entry] = await changed(
      () => ({ visits: 0, orders: 0, tags: [] }),
      ({ state }) => ({ visits: (state.orders as number) + 1 }),
    );
    expect(entry).toContain('state.visits is NaN');
    expect(entry).toContain(ADVICE);
  });

  it('DAY-02 adds nothing if the stored state has every key', async () => {
    const entries = await changed(() => ({ visits: 0 }));
    expect(entries).toHaveLength(2);
    expect(entries.join()).not.toContain('initialState');
  });

  it('DAY-02 keeps the error of the handler if initialState throws', async () => {
    const entries = await changed(() => {
      throw new RangeError('no defaults');
    });
    expect(entries[0]).toContain('TypeError: Cannot read properties of undefined');
  });

  describe('in production', () => {
    inProduction();

    it('DAY-02 NST-22 names the keys, but not the message of the error', async () => {
      const entries = await changed(() => ({ orders: [], tags: [] }));
      expect(entries).toEqual([expect.stringContaining(`TypeError\n${ADVICE}\n    at `)]);
      expect(entries[0]).not.toContain('Cannot read');
    });
  });
});
