import { type Message, type MessageDraft } from 'nestjs-agent-sessions';
import { isDue, type SeenConversation } from '../../lib/conversation/compaction-thresholds.js';
import { type ConversationHead, FIRST_HEAD } from '../../lib/conversation/conversation-head.js';
import { CompactionFailedError } from '../../lib/conversation/compaction.errors.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { LASTING_STORES, rejection } from '../support/running-application.js';
import { DESK, headOf, readThroughHead, speak, startProcess, task } from './compactors.js';

/** A token a character, and four a message. */
const tokens = new MessageTokens((text) => text.length);

describe('when a conversation is compacted', () => {
  const due = (
    options: Parameters<typeof task>[1],
    window: Parameters<typeof task>[2],
    seen: Partial<SeenConversation>,
    head: Partial<ConversationHead> = {},
  ): boolean =>
    isDue(
      task('s', options, window).policy,
      DESK,
      { ...FIRST_HEAD, ...head },
      { turnIndex: 0, history: [], from: 1, added: [], ...seen },
      tokens,
    );

  it('BOT-41 afterTokens: also when more messages are there than are loaded', () => {
    const history = messages(801, 1000);
    const options = { afterTokens: 1_000_000 };
    expect(due(options, () => [], { history, from: 801 })).toBe(true);
    expect(due(options, () => [], { history, from: 801 }, { through: 700, since: 800 })).toBe(false);
    expect(due(options, () => [], { history: messages(1, 200), from: 1 })).toBe(false);
  });

  it('BOT-41 what does not fit the window of the agents any more is not left between it and the summary', () => {
    const options = { afterTurns: 1000 };
    expect(due(options, 20, { history: messages(1, 18), added: drafts(2) })).toBe(false);
    expect(due(options, 20, { history: messages(1, 18), added: drafts(3) })).toBe(true);
    expect(due({}, 20, { history: messages(1, 18), added: drafts(3) })).toBe(false);
    expect(due(options, () => [], { history: messages(1, 200), from: 1 })).toBe(false);
    // 4 + 1 tokens each.
    expect(due(options, { maxTokens: 50 }, { history: messages(1, 9), added: drafts(1) })).toBe(false);
    expect(due(options, { maxTokens: 50 }, { history: messages(1, 9), added: drafts(2) })).toBe(true);
  });

  it('BOT-41 what cannot be compacted is counted anew, and pinned messages do not count', () => {
    const options = { afterTurns: 1000 };
    const history = messages(1, 18);
    expect(due(options, 20, { history, added: drafts(3) }, { since: 18 })).toBe(false);
    const led: Message[] = [{ ...history[0], role: 'system' }, ...history.slice(1, 3)];
    expect(due({ afterTurns: 1 }, 20, { history: led, turnIndex: 5 })).toBe(false);
    expect(due({ afterTurns: 1 }, 20, { history: messages(1, 3), turnIndex: 5 })).toBe(true);
  });
});

describe.each(LASTING_STORES)('what compaction promises over $name', ({ create }) => {
  it('BOT-41 no more than half a window of the agents stays', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, 's', 1, 6);
    await compactor.compact(task('s', { keep: 6 }, 4));
    expect(await readThroughHead(adapter, 's')).toEqual(['1 2 3 4', '5', '6']);
    await speak(adapter, 's', 7, 9);
    // 25 tokens, less those of the summary, but half of them at least: two messages of 5 are too many for half of that.
    await compactor.compact(task('s', { keep: 6 }, { maxTokens: 25 }));
    expect(await readThroughHead(adapter, 's')).toEqual(['(1 2 3 4) 5 6 7 8', '9']);
  });

  it.each(['summarize', 'onCompact'] as const)(
    'BOT-44 a call of %s that hangs is aborted and fails, and the session is free',
    async (what) => {
      const { adapter, compactor, events } = await startProcess(create()(), { timeoutMs: 100 });
      await speak(adapter, 's', 1, 6);
      let aborted = false;
      const hang = (_: unknown, { signal }: { signal: AbortSignal }): Promise<string> => {
        signal.addEventListener('abort', () => (aborted = true));
        return new Promise(() => {});
      };
      const error = await rejection(compactor.compact(task('s', { [what]: hang })), CompactionFailedError);
      expect(error).toMatchObject({ phase: what === 'summarize' ? 'summarize' : 'apply' });
      expect((error.cause as Error).message).toBe(`${what} has taken longer than 100 ms.`);
      expect(aborted).toBe(true);
      expect(events).toMatchObject([{ type: 'compaction-failed', failures: 1 }]);
      expect(await headOf(adapter, 's')).toMatchObject({ lease: null, failure: { count: 1 } });
      expect(await compactor.compact(task('s'))).toMatchObject({ messages: 4 });
    },
  );

  it("BOT-52 an orchestrator with a store of its own leaves another one's summary where it is", async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, 's', 1, 6);
    await compactor.compact(task('s'));
    await speak(adapter, 's', 7, 8);
    await compactor.compact(task('s', { onCompact: () => undefined }));
    expect(await readThroughHead(adapter, 's')).toEqual(['1 2 3 4', '5', '6', '7', '8']);
  });

  it('BOT-44 a counter that throws is told once, then there is a pause', async () => {
    const broken = new MessageTokens(() => NaN);
    const { adapter, compactor, events } = await startProcess(create()(), { tokens: broken });
    const history = await speak(adapter, 's', 1, 6);
    for (let turnIndex = 0; turnIndex < 3; turnIndex += 1) {
      const head = await headOf(adapter, 's');
      const seen = { turnIndex, history, from: 1, added: [] };
      compactor.consider(task('s', { afterTokens: 1 }), head, seen, new Date().toISOString());
      await compactor.idle();
    }
    expect(events).toMatchObject([{ type: 'compaction-failed', phase: 'load', failures: 1 }]);
  });

  it('BOT-44 what fails before the session is held is told, too', async () => {
    const adapter = create()();
    const get = (): Promise<never> => Promise.reject(new Error('gone'));
    const state = { get } as never;
    const { compactor, events } = await startProcess(adapter, { adapter: { state } });
    const history = await speak(adapter, 's', 1, 6);
    const seen = { turnIndex: 5, history, from: 1, added: [] };
    compactor.consider(task('s', { afterTurns: 1 }), null, seen, new Date().toISOString());
    await compactor.idle();
    await new Promise(setImmediate);
    expect(events).toMatchObject([
      { type: 'compaction-failed', phase: 'load', failures: 0, error: { message: 'gone' } },
    ]);
  });
});

function messages(from: number, through: number): Message[] {
  return Array.from({ length: through - from + 1 }, (_, index) => ({
    id: `${from + index}`,
    role: 'user',
    content: 'x',
    position: from + index,
    createdAt: 'then',
  }));
}

function drafts(count: number): MessageDraft[] {
  return Array.from({ length: count }, () => ({ role: 'user', content: 'x' }));
}
