import { type ConversationMessage, type MessageDraft } from 'nestjs-agent-sessions';
import { isDue, type SeenConversation } from '../../lib/conversation/compaction-thresholds.js';
import { type ConversationHead, FIRST_HEAD } from '../../lib/conversation/conversation-head.js';
import { CompactionError } from '../../lib/conversation/compaction.errors.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { LASTING_STORES, rejection } from '../support/running-application.js';
import { DESK, headOf, readThroughHead, speak, startProcess, task } from './compactors.js';

/** A token is a character, plus four per message. */
const tokens = new MessageTokens((text) => text.length);

describe('isDue', () => {
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

  it('BOT-41 is true for afterTokens if the log has more messages than are loaded', () => {
    const history = messages(801, 1000);
    const options = { afterTokens: 1_000_000 };
    expect(due(options, () => [], { history, from: 801 })).toBe(true);
    expect(due(options, () => [], { history, from: 801 }, { through: 700, since: 800 })).toBe(false);
    expect(due(options, () => [], { history: messages(1, 200), from: 1 })).toBe(false);
  });

  it('BOT-41 is true if messages would be neither in the agents’ window nor in the summary', () => {
    const options = { afterTurns: 1000 };
    expect(due(options, 20, { history: messages(1, 18), added: drafts(2) })).toBe(false);
    expect(due(options, 20, { history: messages(1, 18), added: drafts(3) })).toBe(true);
    expect(due({}, 20, { history: messages(1, 18), added: drafts(3) })).toBe(false);
    expect(due(options, () => [], { history: messages(1, 200), from: 1 })).toBe(false);
    // Each message has 4 + 1 tokens.
    expect(due(options, { maxTokens: 50 }, { history: messages(1, 9), added: drafts(1) })).toBe(false);
    expect(due(options, { maxTokens: 50 }, { history: messages(1, 9), added: drafts(2) })).toBe(true);
  });

  it('BOT-41 does not count pinned messages and those before the last attempt', () => {
    const options = { afterTurns: 1000 };
    const history = messages(1, 18);
    expect(due(options, 20, { history, added: drafts(3) }, { since: 18 })).toBe(false);
    const led: ConversationMessage[] = [{ ...history[0], role: 'system' }, ...history.slice(1, 3)];
    expect(due({ afterTurns: 1 }, 20, { history: led, turnIndex: 5 })).toBe(false);
    expect(due({ afterTurns: 1 }, 20, { history: messages(1, 3), turnIndex: 5 })).toBe(true);
  });
});

describe.each(LASTING_STORES)('compaction limits over $name', ({ create }) => {
  it('BOT-41 keeps at most half of the agents’ window', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, 's', 1, 6);
    await compactor.compact(task('s', { keep: 6 }, 4));
    expect(await readThroughHead(adapter, 's')).toEqual(['1 2 3 4', '5', '6']);
    await speak(adapter, 's', 7, 9);
    // The limit is 25 tokens minus the summary, at least half of 25. Two messages of 5 exceed half of the result.
    await compactor.compact(task('s', { keep: 6 }, { maxTokens: 25 }));
    expect(await readThroughHead(adapter, 's')).toEqual(['(1 2 3 4) 5 6 7 8', '9']);
  });

  it.each(['summarize', 'onCompact'] as const)(
    'BOT-44 aborts and fails a call of %s that hangs, and releases the session',
    async (what) => {
      const { adapter, compactor, events } = await startProcess(create()(), { timeoutMs: 100 });
      await speak(adapter, 's', 1, 6);
      let aborted = false;
      const hang = (_: unknown, { signal }: { signal: AbortSignal }): Promise<string> => {
        signal.addEventListener('abort', () => (aborted = true));
        return new Promise(() => {});
      };
      const error = await rejection(
        compactor.compact(task('s', { [what]: hang })),
        CompactionError,
        'COMPACTION_FAILED',
      );
      expect(error).toMatchObject({ phase: what === 'summarize' ? 'summarize' : 'apply' });
      expect((error.cause as Error).message).toBe(`${what} took longer than 100 ms.`);
      expect(aborted).toBe(true);
      expect(events).toMatchObject([{ type: 'compaction-failed', failures: 1 }]);
      expect(await headOf(adapter, 's')).toMatchObject({ lease: null, failure: { count: 1 } });
      expect(await compactor.compact(task('s'))).toMatchObject({ messages: 4 });
    },
  );

  it('BOT-52 keeps the summary of another orchestrator when one with its own store compacts', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, 's', 1, 6);
    await compactor.compact(task('s'));
    await speak(adapter, 's', 7, 8);
    await compactor.compact(task('s', { onCompact: () => undefined }));
    expect(await readThroughHead(adapter, 's')).toEqual(['1 2 3 4', '5', '6', '7', '8']);
  });

  it('BOT-44 reports a broken counter once, then pauses', async () => {
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

  it('BOT-44 reports failures before the session is held', async () => {
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

function messages(from: number, through: number): ConversationMessage[] {
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
