import {
  type CompactionOptions,
  defineOrchestrator,
  type ConversationMessage,
  type MessageDraft,
  OrchestratorEvents,
  reply,
  SessionStateService,
  type Summarizer,
  type TurnReport,
} from 'nestjs-agent-sessions';
import { type CompactStateRequest, type StateStoreReport } from 'nestjs-agent-sessions/http';
import { afterTurns } from '../conversation/after-turn.js';
import { listing } from '../conversation/compactors.js';
import {
  type Application,
  type ApplicationOptions,
  LIVE_STORES,
  startApplication,
} from '../support/running-application.js';

interface Desk extends Application {
  readonly say: (text: string) => Promise<TurnReport>;
  readonly compact: (request?: Partial<CompactStateRequest>) => Promise<StateStoreReport>;
  readonly counted: () => Promise<Pick<StateStoreReport, 'messageCount' | 'windowCount'>>;
  readonly restore: () => Promise<unknown>;
  readonly undo: () => Promise<unknown>;
  /** The input of the last turn. */
  readonly seen: () => unknown[];
  readonly sessionId: string;
  readonly events: string[];
}

/** Answers `re ...`. */
async function startDesk(
  adapter: ApplicationOptions['adapter'],
  state: { summarize?: Summarizer } = {},
  policies: readonly (CompactionOptions | undefined)[] = [undefined],
): Promise<Desk> {
  let given: readonly MessageDraft[] = [];
  const desks = policies.map((compaction, index) =>
    defineOrchestrator({
      name: `desk-${index}`,
      ...(compaction ? { compaction } : {}),
      intents: {
        answer: ({ input, history }) => {
          given = history;
          return reply(`re ${input.text}`);
        },
      },
    }),
  );
  const application = await startApplication({ adapter, orchestrators: desks, state });
  const sessionId = await application.session();
  const handle = application.handle(desks[0]);
  const led = afterTurns(application.app);
  const events: string[] = [];
  application.app.get(OrchestratorEvents, { strict: false }).stream.subscribe(({ type }) => events.push(type));
  const service = application.app.get(SessionStateService, { strict: false });
  return {
    ...application,
    sessionId,
    events,
    seen: () => given.map(({ content }) => content),
    say: async (text) => {
      const { id } = await handle.execute(text, { sessionId });
      await led(id);
      return (await application.turns.get(id))?.report as unknown as TurnReport;
    },
    compact: async (request = {}) =>
      (await service.compact({ sessionId, stores: ['conversation'], ...request })).stores[0],
    counted: async () => {
      const { messageCount, windowCount } = (await service.describe({ sessionId })).stores[0];
      return { messageCount, windowCount };
    },
    restore: () => handle.command('restore', { sessionId }),
    undo: () => handle.undo(sessionId),
  };
}

describe.each(LIVE_STORES)('compaction by request in an application over $name', ({ open }) => {
  it('STA-24 lets orchestrators without a policy read the compacted conversation, and report the compaction', async () => {
    const { say, compact, restore, seen, events, adapter, sessionId } = await startDesk(open());
    for (const text of ['1', '2', '3']) await say(text);
    const report = await compact({ maxMessages: 2 });
    expect(report).toMatchObject({ compacted: true, metadata: { messagesBefore: 6, messagesAfter: 2, through: 4 } });
    expect((await say('4')).compaction).toMatchObject({ status: 'applied', through: 4 });
    expect(seen()).toEqual(['3', 're 3']);
    expect((await say('5')).compaction).toBeUndefined();
    expect(seen()).toEqual(['3', 're 3', '4', 're 4']);

    expect(await restore()).toEqual({ through: 0 });
    expect((await say('6')).compaction).toMatchObject({ status: 'restored', through: 0 });
    expect(seen()).toHaveLength(10);
    expect(await adapter.conversations.page(sessionId)).toHaveLength(12);
    expect(events.filter((type) => type.startsWith('compaction'))).toEqual([]);
  });

  it('STA-24 restores the messages before an undone turn that was left out', async () => {
    const { say, compact, seen, undo } = await startDesk(open());
    for (const text of ['1', '2', '3']) await say(text);
    await compact({ maxMessages: 1 });
    await say('4');
    expect(seen()).toEqual(['re 3']);
    await undo();
    await undo();
    await say('5');
    expect(seen()).toEqual(['1', 're 1', '2', 're 2']);
  });

  it('FIX-46 includes the summary in windowCount, and excludes undone messages', async () => {
    const { say, compact, counted, seen, undo } = await startDesk(open(), { summarize: listing });
    for (const text of ['1', '2', '3']) await say(text);
    await compact({ strategy: 'summary', preserveRecent: 2 });
    expect(await counted()).toEqual({ messageCount: 6, windowCount: 3 });
    await say('4');
    expect(seen()).toHaveLength(3);
    expect(await counted()).toEqual({ messageCount: 8, windowCount: 5 });
    await undo();
    expect(await counted()).toEqual({ messageCount: 8, windowCount: 3 });
    await say('5');
    expect(seen()).toEqual(['1 re 1 2 re 2', '3', 're 3']);
  });

  it('STA-24 summarizes with state.summarize, whatever the policies', async () => {
    const asked: unknown[] = [];
    const summarize: Summarizer = (messages: readonly ConversationMessage[], { orchestrator, summaryMaxTokens }) => {
      asked.push([orchestrator, summaryMaxTokens]);
      return listing(messages);
    };
    const own = { summarize: () => 'not this one' };
    const { say, compact, seen } = await startDesk(open(), { summarize }, [own, own]);
    for (const text of ['1', '2', '3']) await say(text);
    const request = { strategy: 'summary', preserveRecent: 2, summaryMaxTokens: 50 } as const;
    // Reports must not contain messages.
    const { compacted, metadata } = await compact(request);
    expect({ compacted, metadata }).toEqual({
      compacted: true,
      metadata: { messagesBefore: 6, messagesAfter: 3, through: 4 },
    });
    expect(asked).toEqual([[null, 50]]);
    await say('4');
    expect(seen()).toEqual(['1 re 1 2 re 2', '3', 're 3']);
  });

  it('STA-24 summarizes with the only policy, and reports its usage in the next turn', async () => {
    const usage = { promptTokens: 100, completionTokens: 7, totalTokens: 107 };
    const summarize = (messages: readonly ConversationMessage[]) => ({ text: listing(messages), usage });
    const { say, compact, seen } = await startDesk(open(), {}, [{ summarize }, undefined]);
    for (const text of ['1', '2', '3']) await say(text);
    expect(await compact({ strategy: 'summary', preserveRecent: 2 })).toMatchObject({ compacted: true });
    expect((await say('4')).compaction).toMatchObject({ status: 'applied', usage });
    expect(seen()).toEqual(['1 re 1 2 re 2', '3', 're 3']);
  });

  it.each([{ policies: 0 }, { policies: 2 }])(
    'STA-24 rejects a summary without a definite summarizer: $policies policies',
    async ({ policies }) => {
      const own = policies > 0 ? { summarize: () => 'mine' } : undefined;
      const { say, compact, seen } = await startDesk(open(), {}, [own, own]);
      for (const text of ['1', '2', '3']) await say(text);
      const report = await compact({ strategy: 'summary', preserveRecent: 0 });
      expect(report).toMatchObject({ compacted: false, error: { code: 'COMPACTION_NOT_CONFIGURED' } });
      await say('4');
      expect(seen()).toEqual(['1', 're 1', '2', 're 2', '3', 're 3']);
    },
  );
});
