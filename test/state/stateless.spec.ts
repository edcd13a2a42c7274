import 'reflect-metadata';
import {
  defineOrchestrator,
  Intent,
  Orchestrator,
  type OrchestratorConfig,
  reply,
  type SessionRecord,
  SessionRecords,
  SessionsConfigurationError,
  SessionsModule,
  SessionStateService,
  StateModuleError,
  Summarize,
  type TurnContext,
  type TurnReport,
} from 'nestjs-agent-sessions';
import { SessionsTestingModule } from 'nestjs-agent-sessions/testing';
import { type StateModuleName } from '../../lib/state/state-module.js';
import { conversationNotReset } from '../../lib/state/state.errors.js';
import { OPERATOR, stateApp } from '../http/state-app.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import {
  type Application,
  type ApplicationOptions,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { collect } from '../support/session-state.js';

/** Lists of modules without `conversation`. */
const STATELESS: readonly (readonly [string, readonly StateModuleName[]])[] = [
  ['without modules', []],
  ['without the conversation', ['tools', 'task', 'flow']],
];

/** Replies with the number of its turns and its history. */
const config: OrchestratorConfig<{ turns?: number }> = {
  name: 'desk',
  intents: {
    answer: async (turn) => {
      if (turn.input.text === 'wait') await turn.waitFor('go');
      if (turn.input.text === 'run') {
        await gate().pass(turn.signal);
      }
      const turns = (turn.state.turns ?? 0) + 1;
      return reply(`answer ${turns}`, { state: { turns }, data: turn.history.map(({ content }) => content as string) });
    },
  },
};
const desk = defineOrchestrator(config);

interface Desk extends Application {
  readonly say: (text: string, sessionId: string) => Promise<unknown>;
  readonly log: (sessionId: string) => Promise<unknown[]>;
  readonly state: SessionStateService;
}

async function startDesk(options: ApplicationOptions = {}): Promise<Desk> {
  const app = await startApplication({ orchestrators: [desk], ...options });
  return {
    ...app,
    state: app.app.get(SessionStateService, { strict: false }),
    say: async (text, sessionId) => (await app.handle(desk).execute(text, { sessionId })).data,
    log: async (sessionId) => (await app.adapter.conversations.page(sessionId)).map(({ content }) => content),
  };
}

describe.each(STATELESS)('an application %s', (_, modules) => {
  const state = { modules };

  describe.each(LIVE_STORES)('over $name', ({ open }) => {
    it('FIX-46 writes and reads no conversation log, and keeps the state of turns', async () => {
      const calls: string[] = [];
      const { session, say, log, handle } = await startDesk({ adapter: recordingAdapter(open(), calls), state });
      const sessionId = await session();

      expect(await say('one', sessionId)).toEqual([]);
      expect(await say('two', sessionId)).toEqual([]);

      expect(calls.filter((call) => call.startsWith('conversations.'))).toEqual([]);
      expect(await log(sessionId)).toEqual([]);
      expect((await handle(desk).history(sessionId)).map(({ state: { turns } }) => turns)).toEqual([2, 1]);
    });

    it('FIX-46 gives a handler the history that its caller sends', async () => {
      const { session, handle, log } = await startDesk({ adapter: open(), state });
      const sessionId = await session();
      const history = [{ role: 'user', content: 'earlier' }] as const;

      expect((await handle(desk).execute('one', { sessionId, history })).data).toEqual(['earlier']);
      expect(await log(sessionId)).toEqual([]);
    });

    it('FIX-46 keeps no message of turns that are interrupted while they wait or run', async () => {
      const { session, handle, log, turns } = await startDesk({ adapter: open(), state });
      const sessionId = await session();
      const waiting = await handle(desk).submit('wait', { sessionId });
      await eventually(async () => (await turns.get(waiting.id))?.status === 'waiting');
      const running = await handle(desk).submit('run', { sessionId, whenBusy: 'interrupt' });
      await eventually(async () => (await turns.get(running.id))?.status === 'running');
      await handle(desk).execute('last', { sessionId, whenBusy: 'interrupt' });

      const statuses = (await turns.list({ sessionId })).map(({ status }) => status);
      expect(statuses).toEqual(['cancelled', 'cancelled', 'awaiting-input']);
      expect(await log(sessionId)).toEqual([]);
    });

    it('FIX-46 forks the state of a session without messages', async () => {
      const { session, say, handle, log } = await startDesk({ adapter: open(), state });
      const sessionId = await session();
      await say('one', sessionId);
      await say('two', sessionId);

      const fork = await handle(desk).fork(sessionId, { atTurn: 0 });

      expect((await handle(desk).execute('three', { sessionId: fork.id })).reply).toBe('answer 2');
      expect(await log(fork.id)).toEqual([]);
    });

    it('FIX-46 rejects undo, compact and restore, and starts no turn for them', async () => {
      const { session, say, handle, turns } = await startDesk({ adapter: open(), state });
      const sessionId = await session();
      await say('one', sessionId);

      const refused = [
        ['undo', handle(desk).undo(sessionId)],
        ['compact', handle(desk).command('compact', { sessionId })],
        ['restore', handle(desk).command('restore', { sessionId })],
      ] as const;
      for (const [what, call] of refused) {
        const error = await rejection(call, StateModuleError);
        expect(error).toMatchObject({ code: 'STATE_MODULE_DISABLED', module: 'conversation', enabled: modules });
        expect(error.message).toBe(
          `${what} needs the state module conversation, which is not enabled. Enabled: ${modules.join(', ') || 'none'}. ` +
            'Add it to state.modules of SessionsModule.forRoot(), or a custom one to stateModules of forFeature().',
        );
      }
      expect(await turns.list({ sessionId })).toHaveLength(1);
    });
  });

  describe.each(LASTING_STORES)('after a restart over $name', ({ create }) => {
    it('FIX-46 keeps an existing log unchanged, and continues it once the module is enabled again', async () => {
      const open = create();
      const first = await startDesk({ adapter: open() });
      const sessionId = await first.session();
      await first.say('one', sessionId);
      await first.say('two', sessionId);
      await first.handle(desk).undo(sessionId);
      const before = await first.log(sessionId);
      expect(before).toEqual(['one', 'answer 1', 'two', 'answer 2']);
      if (open() !== open()) await first.close();

      const calls: string[] = [];
      const second = await startDesk({ adapter: recordingAdapter(open(), calls), state });
      expect(await second.say('three', sessionId)).toEqual([]);
      expect(calls.filter((call) => call.startsWith('conversations.'))).toEqual([]);
      expect(await second.log(sessionId)).toEqual(before);
      // An export contains all stored data.
      const records = await collect(second.app.get(SessionRecords, { strict: false }).export({ sessionId }));
      expect(records.filter(isMessage)).toHaveLength(4);
      if (open() !== open()) await second.close();

      const third = await startDesk({ adapter: open() });
      // The undone messages stay undone, and the turn between is not in the log.
      expect(await third.say('four', sessionId)).toEqual(['one', 'answer 1']);
      expect(await third.log(sessionId)).toEqual([...before, 'four', 'answer 3']);
      const fork = await third.handle(desk).fork(sessionId, { atTurn: 2 });
      expect(await third.log(fork.id)).toEqual(['one', 'answer 1']);
    });

    it('FIX-46 reports the tokens of a summary once', async () => {
      const open = create();
      const usage = { promptTokens: 100, completionTokens: 7, totalTokens: 107 };
      const summing = defineOrchestrator({
        ...config,
        compaction: { keep: 2, summarize: () => ({ text: 'a summary', usage }) },
      });
      const reported = async ({ handle, turns }: Desk, sessionId: string): Promise<unknown> => {
        const { id } = await handle(desk).execute('hello', { sessionId });
        return ((await turns.get(id))?.report as unknown as TurnReport).usage;
      };
      const first = await startDesk({ adapter: open(), orchestrators: [summing] });
      const sessionId = await first.session();
      for (const text of ['one', 'two', 'three']) await first.say(text, sessionId);
      await first.handle(desk).command('compact', { sessionId });
      expect(await reported(first, sessionId)).toMatchObject(usage);
      if (open() !== open()) await first.close();

      const second = await startDesk({ adapter: open(), state });
      expect(await reported(second, sessionId)).toBeUndefined();
      if (open() !== open()) await second.close();

      const third = await startDesk({ adapter: open(), orchestrators: [summing] });
      expect(await reported(third, sessionId)).toBeUndefined();
    });

    it('FIX-46 reports in a reset that a conversation log remains', async () => {
      const open = create();
      const first = await startDesk({ adapter: open() });
      const [spoken, silent] = [await first.session(), await first.session()];
      await first.say('one', spoken);
      if (open() !== open()) await first.close();

      const { state: service, log } = await startDesk({ adapter: open(), state });
      const error = {
        store: 'conversation',
        code: 'CONVERSATION_NOT_RESET',
        message: conversationNotReset().message,
      };
      for (const request of [
        { sessionId: spoken },
        { sessionId: spoken, dryRun: true },
        { sessionId: spoken, stores: ['conversation'] },
        { all: true },
      ]) {
        expect(await service.reset(request)).toMatchObject({ cleared: [], errors: [error] });
      }
      expect((await service.reset({ sessionId: spoken, stores: ['conversation'] })).missing).toEqual(['conversation']);
      expect((await service.reset({ sessionId: spoken, stores: ['tools'] })).errors).toEqual([]);
      expect((await service.reset({ sessionId: silent })).errors).toEqual([]);
      expect(await log(spoken)).toEqual(['one', 'answer 1']);
    });
  });

  it('FIX-46 answers a reset that leaves the log with 409', async () => {
    const { post, adapter, session, app } = await stateApp({ state });
    const { id: sessionId } = await session();
    expect((await post('/state/reset', { sessionId }, OPERATOR)).status).toBe(200);
    await adapter.conversations.append(sessionId, [{ id: 'm1', role: 'user', content: 'hi' }]);

    const answer = await post('/state/reset', { sessionId }, OPERATOR);
    await app.close();

    expect(answer.status).toBe(409);
    expect(answer.body).toMatchObject({ code: 'CONVERSATION_NOT_RESET', result: { cleared: [] } });
  });

  it('FIX-46 rejects compaction at the start', async () => {
    @Orchestrator({ name: 'summing' })
    class Summing {
      @Intent()
      answer({ input }: TurnContext): string {
        return input.text;
      }

      @Summarize()
      summarize(): string {
        return 'all of it';
      }
    }
    const compacting = defineOrchestrator({
      name: 'compacting',
      compaction: { summarize: () => 'all of it' },
      intents: { answer: () => 'ok' },
    });
    const rule = `needs the state module conversation, which is not enabled. Enabled: ${modules.join(', ') || 'none'}.`;
    for (const [name, orchestrator] of [
      ['summing', Summing],
      ['compacting', compacting],
    ] as const) {
      const error = await rejection(
        startApplication({ orchestrators: [orchestrator], state }),
        SessionsConfigurationError,
      );
      expect(error).toMatchObject({ code: 'CONFIGURATION' });
      expect(error.message).toBe(
        `Orchestrator ${name}: compaction ${rule} Add conversation to state.modules, or remove the option.`,
      );
      await rejection(
        SessionsTestingModule.create({ orchestrators: [orchestrator], state }),
        SessionsConfigurationError,
      );
    }
    const error = await rejection(
      startApplication({ state: { ...state, summarize: () => 'all of it' } }),
      SessionsConfigurationError,
    );
    expect(error.message).toContain(`SessionsModule: The option state.summarize ${rule}`);
  });
});

it('FIX-46 accepts every other module without conversations', () => {
  expect(() => SessionsModule.forRoot({ state: { modules: [] } })).not.toThrow();
});

function isMessage({ type }: SessionRecord): boolean {
  return type === 'message';
}
