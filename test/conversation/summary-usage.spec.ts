import {
  defineOrchestrator,
  InvalidInputError,
  type OrchestratorDefinition,
  reply,
  SessionStateService,
  TurnFailedError,
  type TurnReport,
} from 'nestjs-agent-sessions';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const USAGE = { promptTokens: 90, completionTokens: 10, totalTokens: 100 };

/** An orchestrator whose summaries use 100 tokens each; with `texts`, each summary is the next one of them. */
function deskOf(name: string, texts: string[] = []): OrchestratorDefinition {
  return defineOrchestrator({
    name,
    // Compacts only by command.
    compaction: { keep: 0, summarize: () => ({ text: texts.shift() ?? 'summary', usage: USAGE }) },
    intents: {
      answer: ({ input }) => {
        if (input.text === 'fail') throw new Error('not today');
        return reply(`re ${input.text}`);
      },
    },
  });
}

describe.each(LIVE_STORES)('the token usage of summaries over $name', ({ open }) => {
  async function start(...desks: OrchestratorDefinition[]) {
    const app = await startApplication({ adapter: open(), orchestrators: desks, turns: { retry: { attempts: 1 } } });
    const sessionId = await app.session();
    const reportOf = async (id: string): Promise<TurnReport> =>
      (await app.turns.get(id))?.report as unknown as TurnReport;
    return {
      ...app,
      sessionId,
      reportOf,
      say: async (name: string, text = 'hi', to = sessionId): Promise<TurnReport> =>
        reportOf((await app.handle({ name }).execute(text, { sessionId: to })).id),
      compact: (name: string) => app.handle({ name }).command('compact', { sessionId }),
    };
  }

  it('BOT-09 BOT-41 is reported once for all passes, by the next turn that settles successfully', async () => {
    const { adapter, sessionId, say, compact, handle, reportOf } = await start(deskOf('desk'));
    expect((await say('desk')).usage).toBeUndefined();
    const said = Array.from({ length: 450 }, (_, n) => ({ id: `m${n}`, role: 'user' as const, content: `${n}` }));
    await adapter.conversations.append(sessionId, said);
    expect(await compact('desk')).toMatchObject({ messages: 452, usage: { totalTokens: 300 } });

    const failed = await rejection(handle({ name: 'desk' }).execute('fail', { sessionId }), TurnFailedError);
    expect((await reportOf(failed.turnId)).usage).toBeUndefined();
    const report = await say('desk');
    expect(report).toMatchObject({
      usage: { promptTokens: 270, completionTokens: 30, totalTokens: 300, summarizer: { totalTokens: 300 } },
      compaction: { status: 'applied', usage: { totalTokens: 300 } },
    });
    const next = await say('desk');
    expect(next.usage).toBeUndefined();
    expect(next.compaction).toBeUndefined();
    await compact('desk');
    expect(await say('desk')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
  });

  it('BOT-09 STA-23 is reported once, even if the conversation is cleared before or after', async () => {
    const { app, sessionId, say, compact } = await start(deskOf('desk'));
    const state = app.get(SessionStateService, { strict: false });
    await say('desk');
    await compact('desk');
    expect(await say('desk')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
    await state.conversation.clear(sessionId);
    const report = await say('desk');
    expect(report.usage).toBeUndefined();
    expect(report.compaction).toBeUndefined();

    await compact('desk');
    await state.conversation.clear(sessionId);
    expect(await say('desk')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
    expect((await say('desk')).usage).toBeUndefined();
    expect(await compact('desk')).toMatchObject({ messages: 4 });
  });

  it('BOT-09 BOT-44 includes summaries that were rejected', async () => {
    const { say, compact } = await start(deskOf('desk', ['  ', 'summary']));
    await say('desk');
    const failure = await compact('desk').catch((error: unknown) => error);
    expect((failure as Error).cause).toBeInstanceOf(InvalidInputError);
    expect(await say('desk')).toMatchObject({
      usage: { summarizer: { totalTokens: 100 } },
      compaction: { status: 'failed', failures: 1 },
    });
    await compact('desk');
    expect(await say('desk')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
  });

  it('BOT-09 BOT-52 is reported only by the orchestrator that compacted', async () => {
    const { say, compact } = await start(deskOf('desk'), deskOf('other'));
    await say('desk');
    await say('other');
    await compact('desk');
    expect((await say('other')).usage).toBeUndefined();
    expect(await say('desk')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
    expect((await say('other')).usage).toBeUndefined();
  });

  it('BOT-09 BOT-25 is not reported again after an undo or in a fork', async () => {
    const { say, compact, handle, sessionId } = await start(deskOf('desk'));
    const desk = handle({ name: 'desk' });
    await say('desk', 'one');
    await say('desk', 'two');
    await compact('desk');
    expect(await say('desk', 'three')).toMatchObject({ usage: { summarizer: { totalTokens: 100 } } });
    const { id: fork } = await desk.fork(sessionId, {});
    expect((await say('desk', 'four', fork)).usage).toBeUndefined();
    await desk.undo(sessionId);
    expect((await say('desk', 'four')).usage).toBeUndefined();
  });
});
