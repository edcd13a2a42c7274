import { getEventListeners } from 'node:events';
import { type CheckpointStore, type MessageDraft } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { CompactionError } from '../../lib/conversation/compaction.errors.js';
import { type Compaction, type CompactionInfo } from '../../lib/conversation/compaction-policy.js';
import { type CompactionTask } from '../../lib/conversation/compaction-run.js';
import { type SeenConversation } from '../../lib/conversation/compaction-thresholds.js';
import { type ConversationHead, FIRST_HEAD, HEAD } from '../../lib/conversation/conversation-head.js';
import { eventually } from '../support/eventually.js';
import { aborted, gate, LASTING_STORES, rejection } from '../support/running-application.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import {
  add,
  DESK,
  headOf,
  listing,
  type Process,
  readThroughHead,
  speak,
  speakInTurns,
  startProcess,
  task,
} from './compactors.js';

const EMPTY = 'summarize must return a non-empty string, or { text, usage }.';

describe.each(LASTING_STORES)('ConversationCompactor over $name', ({ create }) => {
  const sessionId = 's';

  it('BOT-45 replaces all but the last messages with a summary, and does not change the log', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    const log = await speak(adapter, sessionId, 1, 6);
    const result = await compactor.compact(task(sessionId));

    const replaces = { from: 1, through: 4 };
    expect(result).toEqual({ messages: 4, summary: '1 2 3 4', replaces, usage: null });
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1 2 3 4', '5', '6']);
    expect(await adapter.conversations.page(sessionId)).toEqual(log);
    expect(events).toEqual([
      {
        type: 'compaction-applied',
        orchestrator: DESK,
        sessionId,
        number: 1,
        replaces,
        messages: 4,
        durationMs: expect.any(Number) as number,
      },
    ]);
    const head = await headOf(adapter, sessionId);
    expect(head.summary).toMatchObject({ role: 'system', position: 4, replaces });
    expect(head).toMatchObject({ number: 1, previous: 0, through: 4, lease: null, failure: null });
  });

  it('BOT-41 builds the next summary from the previous one and newer messages', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 9);
    await compactor.compact(task(sessionId));

    expect(await readThroughHead(adapter, sessionId)).toEqual(['(1 2 3 4) 5 6 7', '8', '9']);
    expect((await headOf(adapter, sessionId)).summary?.replaces).toEqual({ from: 1, through: 7 });
  });

  it('BOT-40 BOT-41 keeps the leading system message, and keeps calls with their results', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await add(adapter.conversations, sessionId, [
      { role: 'system', content: 'be kind' },
      { role: 'user', content: '2' },
      { role: 'assistant', content: '3', toolCalls: [{ id: 'x', name: 'find', arguments: {} }] },
      { role: 'tool', content: '4', toolCallId: 'x' },
      { role: 'assistant', content: '5' },
    ]);
    await compactor.compact(task(sessionId));

    expect(await readThroughHead(adapter, sessionId)).toEqual(['be kind', '2', '3', '4', '5']);
  });

  it('BOT-41 summarizes a long log in passes of at most 200 messages', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 450);
    const sizes: number[] = [];
    const count = (messages: readonly unknown[]): string => `${sizes.push(messages.length)}`;
    const result = await compactor.compact(task(sessionId, { keep: 10, summarize: count }));

    expect(sizes).toEqual([200, 201, 41]);
    expect(result).toMatchObject({ messages: 440, replaces: { from: 1, through: 440 } });
    expect(events.map((event) => event.type === 'compaction-applied' && event.messages)).toEqual([200, 200, 40]);
  });

  it('BOT-45 does nothing if there is nothing to compact', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    const nothing = { messages: 0, summary: null, replaces: null, usage: null };
    expect(await compactor.compact(task('nobody'))).toEqual(nothing);
    await speak(adapter, sessionId, 1, 2);
    expect(await compactor.compact(task(sessionId))).toEqual(nothing);

    expect(events).toEqual([]);
    expect(await adapter.state.get({ ...HEAD, sessionId: 'nobody' })).toBeNull();
  });

  it('BOT-41 counts the usage of a summary even if it is rejected', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const usage = { promptTokens: 10, completionTokens: 2, totalTokens: 12 };
    const empty = task(sessionId, { summarize: () => ({ text: ' ', usage }) });
    await rejection(compactor.compact(empty), CompactionError, 'COMPACTION_FAILED');
    const result = await compactor.compact(task(sessionId, { summarize: () => ({ text: 'all', usage }) }));

    const twice = { promptTokens: 20, completionTokens: 4, totalTokens: 24 };
    expect((await headOf(adapter, sessionId)).spent).toEqual({ [DESK]: twice });
    expect(result.usage).toEqual(usage);
    expect(events.at(-1)).toMatchObject({ type: 'compaction-applied', usage });
  });

  it.each([
    { what: 'throws', summarize: () => Promise.reject(new Error('no model')), message: 'no model' },
    { what: 'returns nothing', summarize: () => undefined as unknown as string, message: EMPTY },
    { what: 'returns an empty string', summarize: () => '  \n', message: EMPTY },
  ])('BOT-44 does not change the conversation after a summarizer that $what', async ({ summarize, message }) => {
    const { adapter, compactor, events } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const error = await rejection(
      compactor.compact(task(sessionId, { summarize })),
      CompactionError,
      'COMPACTION_FAILED',
    );

    expect(error).toMatchObject({ phase: 'summarize', cause: { message } });
    expect(events).toMatchObject([{ type: 'compaction-failed', phase: 'summarize', failures: 1 }]);
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1', '2', '3', '4', '5', '6']);
    const { failure, lease, number } = await headOf(adapter, sessionId);
    expect(failure).toMatchObject({ phase: 'summarize', message, count: 1 });
    expect({ lease, number }).toEqual({ lease: null, number: 0 });
  });

  it('BOT-44 retries with growing delays, not on every turn, and at once by command', async () => {
    const backoff = { type: 'exponential', delayMs: 3_600_000, maxDelayMs: 7_200_000 } as const;
    const { adapter, compactor, events } = await startProcess(create()(), { backoff });
    await speak(adapter, sessionId, 1, 6);
    let broken = true;
    const summarize = (): string => {
      if (broken) throw new Error('no model');
      return 'all';
    };
    const automatic = task(sessionId, { afterTurns: 1, summarize });
    await consider(adapter, compactor, automatic, 5);
    await eventually(() => events.length === 2);
    for (let turn = 6; turn < 9; turn += 1) await consider(adapter, compactor, automatic, turn);
    expect(events.map(({ type }) => type)).toEqual(['compaction-suggested', 'compaction-failed']);

    // By the store's clock, the retry is due in up to an hour, and a second failure doubles the delay.
    const { failure } = await headOf(adapter, sessionId);
    const pause = Date.parse(failure!.retryAt) - (await storeNow(adapter));
    expect(pause).toBeGreaterThan(1_700_000);
    expect(pause).toBeLessThanOrEqual(3_600_000);
    await rejection(compactor.compact(automatic), CompactionError, 'COMPACTION_FAILED');
    const second = (await headOf(adapter, sessionId)).failure!;
    expect(second.count).toBe(2);
    expect(Date.parse(second.retryAt) - (await storeNow(adapter))).toBeGreaterThan(3_500_000);
    broken = false;
    await compactor.compact(automatic);
    expect(await headOf(adapter, sessionId)).toMatchObject({ number: 1, failure: null });
  });

  it('BOT-44 does not query the store during the delay', async () => {
    const calls: string[] = [];
    const adapter = create()();
    const { state } = recordingAdapter(adapter, calls);
    const { compactor, events } = await startProcess(adapter, { adapter: { state } });
    await speak(adapter, sessionId, 1, 6);
    const automatic = task(sessionId, { afterTurns: 1, summarize: () => '' });
    await consider(adapter, compactor, automatic, 5);
    expect(events).toHaveLength(2);
    calls.length = 0;
    await consider(adapter, compactor, automatic, 6);
    expect(calls).toEqual([]);
  });

  it('BOT-41 does not compact again for a turn that read the conversation before the compaction', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    const automatic = task(sessionId, { afterTurns: 2, keep: 2 });
    await speakInTurns(adapter, sessionId, 1, 8);
    const before = await headOf(adapter, sessionId);
    await consider(adapter, compactor, automatic, 3);
    await speakInTurns(adapter, sessionId, 9, 10);
    await consider(adapter, compactor, automatic, 4, before);
    expect(events.map(({ type }) => type)).toEqual(['compaction-suggested', 'compaction-applied']);
  });

  it('BOT-41 does not compact again because of kept messages that exceed afterTokens', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    const automatic = task(sessionId, { afterTokens: 100, keep: 2 });
    const say = (content: string) => add(adapter.conversations, sessionId, [{ role: 'user', content }]);
    for (const content of ['1', '2', '3', 'x'.repeat(500)]) await say(content);
    const compacted: number[] = [];
    for (let turn = 0; turn < 12; turn += 1) {
      const before = events.length;
      await consider(adapter, compactor, automatic, turn);
      if (events.length > before) compacted.push(turn);
      // Each message has 20 tokens.
      await say('y'.repeat(16));
    }
    // More than 100 tokens of new messages; two of them are counted again.
    expect(compacted).toEqual([0, 6, 10]);
  });

  it('BOT-41 does not check messages that cannot be compacted again after every turn', async () => {
    const calls: string[] = [];
    const adapter = create()();
    const { state } = recordingAdapter(adapter, calls);
    const { compactor, events } = await startProcess(adapter, { adapter: { state } });
    const automatic = task(sessionId, { afterTurns: 1, afterTokens: 10 });
    // The last message is the result of the call in the first one.
    await add(adapter.conversations, sessionId, [
      { role: 'assistant', content: null, toolCalls: [{ id: 'x', name: 'find', arguments: {} }] },
      ...['2', '3', '4'].map((content): MessageDraft => ({ role: 'user', content })),
      { role: 'tool', content: '5', toolCallId: 'x' },
    ]);
    await consider(adapter, compactor, automatic, 4);
    expect(calls).not.toEqual([]);
    calls.length = 0;
    await consider(adapter, compactor, automatic, 5);
    expect({ calls, events }).toEqual({ calls: [], events: [] });
  });

  it('BOT-41 summarizes past a call whose result is further away than a pass', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await add(adapter.conversations, sessionId, [
      { role: 'assistant', content: '1', toolCalls: [{ id: 'x', name: 'find', arguments: {} }] },
    ]);
    await speak(adapter, sessionId, 2, 199);
    await add(adapter.conversations, sessionId, [{ role: 'tool', content: '200', toolCallId: 'x' }]);
    await speak(adapter, sessionId, 201, 450);
    const policy = { keep: 2, summarize: () => 'all' };
    await add(adapter.conversations, sessionId, [{ role: 'user', content: '451' }]);
    expect(await compactor.compact(task(sessionId, policy))).toMatchObject({ messages: 449 });
    await add(adapter.conversations, 'longer', [
      { role: 'assistant', content: '1', toolCalls: [{ id: 'x', name: 'find', arguments: {} }] },
    ]);
    await speak(adapter, 'longer', 2, 201);
    await add(adapter.conversations, 'longer', [{ role: 'tool', content: '202', toolCallId: 'x' }]);
    await speak(adapter, 'longer', 203, 210);
    expect(await compactor.compact(task('longer', policy))).toMatchObject({ messages: 208 });
  });

  it('BOT-41 keeps applied passes if a later one fails, and counts turns once all are done', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speakInTurns(adapter, sessionId, 1, 4);
    await speak(adapter, sessionId, 5, 300);
    let passes = 0;
    const summarize = (): string => ((passes += 1) === 2 ? '' : `pass ${passes}`);
    await rejection(compactor.compact(task(sessionId, { summarize })), CompactionError, 'COMPACTION_FAILED');
    const { number, turns, failure } = await headOf(adapter, sessionId);
    expect([number, turns, failure?.count]).toEqual([1, {}, 1]);
    await speakInTurns(adapter, sessionId, 5, 6);
    await compactor.compact(task(sessionId, { summarize }));
    // The last of the three turns is kept.
    expect(await headOf(adapter, sessionId)).toMatchObject({ number: 2, through: 300, turns: { desk: 2 } });
  });

  it('BOT-44 retries after the delay', async () => {
    const backoff = { type: 'fixed', delayMs: 1, maxDelayMs: 1 } as const;
    const { adapter, compactor, events } = await startProcess(create()(), { backoff });
    await speak(adapter, sessionId, 1, 6);
    let calls = 0;
    const summarize = (): string => {
      calls += 1;
      if (calls < 3) throw new Error('no model');
      return 'all';
    };
    const automatic = task(sessionId, { afterTurns: 1, summarize });
    await eventually(async () => {
      await consider(adapter, compactor, automatic, 5);
      return events.some(({ type }) => type === 'compaction-applied');
    });
    expect(calls).toBe(3);
    expect(events.flatMap((event) => (event.type === 'compaction-failed' ? event.failures : []))).toEqual([1, 2]);
  });

  it('BOT-43 calls onCompact for a custom store, and does not change windows', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const told: { compaction: Compaction; info: CompactionInfo }[] = [];
    const own = task(sessionId, { onCompact: (compaction, info) => void told.push({ compaction, info }) });
    await compactor.compact(own);
    expect(await compactor.compact(own)).toMatchObject({ messages: 0 });
    await speak(adapter, sessionId, 7, 8);
    await compactor.compact(own);

    expect(told.map(({ compaction }) => compaction)).toEqual([
      { number: 1, summary: '1 2 3 4', replaces: { from: 1, through: 4 } },
      { number: 2, summary: '(1 2 3 4) 5 6', replaces: { from: 1, through: 6 } },
    ]);
    expect(told[0].info).toMatchObject({ sessionId, orchestrator: DESK });
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
  });

  it('BOT-44 reports an onCompact that throws as a failure to apply', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const own = task(sessionId, { onCompact: () => Promise.reject(new Error('full')) });
    expect(await rejection(compactor.compact(own), CompactionError, 'COMPACTION_FAILED')).toMatchObject({
      phase: 'apply',
    });
    expect(events).toMatchObject([{ type: 'compaction-failed', phase: 'apply' }]);
    expect(await headOf(adapter, sessionId)).toMatchObject({ number: 0, through: 0 });
  });

  it('BOT-44 reports a log that cannot be read as a failure to load', async () => {
    const { adapter } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const page = (): Promise<never> => Promise.reject(new Error('gone'));
    const conversations = { window: adapter.conversations.window.bind(adapter.conversations), page } as never;
    const { compactor, events } = await startProcess(adapter, { adapter: { conversations } });
    expect(await rejection(compactor.compact(task(sessionId)), CompactionError, 'COMPACTION_FAILED')).toMatchObject({
      phase: 'load',
    });
    expect(events).toMatchObject([{ type: 'compaction-failed', phase: 'load', failures: 1 }]);
  });

  it('BOT-43 restores one compaction each time, until the whole log is shown', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 8);
    await compactor.compact(task(sessionId));
    const seen = [await readThroughHead(adapter, sessionId)];
    const restored = [];
    for (let i = 0; i < 3; i += 1) {
      restored.push(await compactor.restore(sessionId));
      seen.push(await readThroughHead(adapter, sessionId));
    }

    expect(seen).toEqual([
      ['(1 2 3 4) 5 6', '7', '8'],
      ['1 2 3 4', '5', '6', '7', '8'],
      ['1', '2', '3', '4', '5', '6', '7', '8'],
      ['1', '2', '3', '4', '5', '6', '7', '8'],
    ]);
    expect(restored).toEqual([{ through: 4 }, { through: 0 }, null]);
    await compactor.compact(task(sessionId));
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1 2 3 4 5 6', '7', '8']);
  });

  it('BOT-43 the next turn does not compact restored messages again', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    const policy = { afterTurns: 3, afterTokens: 30 };
    await speakInTurns(adapter, sessionId, 1, 8);
    await consider(adapter, compactor, task(sessionId, policy), 3);
    await eventually(() => events.some(({ type }) => type === 'compaction-applied'));
    await eventually(async () => (await headOf(adapter, sessionId)).lease === null);
    await compactor.restore(sessionId);
    await consider(adapter, compactor, task(sessionId, policy), 4);
    expect(events.map(({ type }) => type)).toEqual(['compaction-suggested', 'compaction-applied']);
  });

  it('BOT-41 compacts once per crossing, and counts kept messages for at most half a threshold', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    // Four turns are kept, although three exceed the threshold.
    const automatic = task(sessionId, { afterTurns: 3, keep: 8 });
    const compacted: number[] = [];
    for (let turn = 0; turn < 14; turn += 1) {
      await speakInTurns(adapter, sessionId, turn * 2 + 1, turn * 2 + 2);
      const before = events.length;
      await consider(adapter, compactor, automatic, turn);
      if (!isResult(events.at(-1), before, events.length)) continue;
      compacted.push(turn);
    }
    expect(compacted).toEqual([4, 7, 10, 13]);
  });

  it('BOT-41 does not summarize undone turns', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speakInTurns(adapter, sessionId, 1, 8);
    const checkpoints = Object.assign(Object.create(adapter.checkpoints) as typeof adapter.checkpoints, {
      load: async (...args: Parameters<CheckpointStore['load']>) => {
        const checkpoint = await adapter.checkpoints.load(...args);
        return checkpoint && { ...checkpoint, undone: [{ from: 3, through: 4 }] };
      },
    });
    const { compactor: other } = await startProcess(adapter, { adapter: { checkpoints } });
    await other.compact(task(sessionId));
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1 2 5 6', '7', '8']);
    expect(await compactor.restore(sessionId)).toEqual({ through: 0 });
  });

  it('BOT-41 ignores a summary of undone messages, and builds the next one from the previous one', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 10);
    await compactor.compact(task(sessionId));
    await adapter.state.append({ ...HEAD, sessionId }, { id: mintId(), entries: [{ from: 7 }] });
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
    await compactor.compact(task(sessionId));
    expect(await readThroughHead(adapter, sessionId)).toEqual(['(1 2 3 4) 5 6 7 8', '9', '10']);
  });

  it('BOT-41 starts a new summary if every earlier one contains undone messages', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 10);
    await compactor.compact(task(sessionId));
    await adapter.state.append({ ...HEAD, sessionId }, { id: mintId(), entries: [{ from: 3 }] });
    await compactor.compact(task(sessionId));
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1 2 3 4 5 6 7 8', '9', '10']);
  });

  it('BOT-41 discards a summary of messages that are undone meanwhile', async () => {
    const { adapter, compactor, events } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 8);
    const summarize = async (): Promise<string> => {
      await adapter.state.append({ ...HEAD, sessionId }, { id: mintId(), entries: [{ from: 6 }] });
      return 'too late';
    };
    await rejection(compactor.compact(task(sessionId, { summarize })), CompactionError, 'COMPACTION_BUSY');
    expect(events.at(-1)).toMatchObject({ type: 'compaction-failed', failures: 0 });
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1 2 3 4', '5', '6', '7', '8']);
  });

  // Node keeps a signal of `AbortSignal.any` in memory while it has listeners.
  it.each([
    ['returned', (): string => 'all'],
    [
      'failed',
      (): string => {
        throw new Error('no model');
      },
    ],
  ])('BOT-41 does not listen to the signal of a summarizer that has %s', async (_, end) => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const signals: AbortSignal[] = [];
    const summarize = (_: unknown, { signal }: CompactionInfo): string => (signals.push(signal), end());
    await compactor.compact(task(sessionId, { summarize })).catch(() => undefined);

    expect(signals.map((signal) => getEventListeners(signal, 'abort'))).toEqual([[]]);
  });

  it('BOT-41 aborts the summarizer when the process stops, and releases the session', async () => {
    const connect = create();
    const { adapter, compactor, events } = await startProcess(connect());
    await speak(adapter, sessionId, 1, 6);
    const begun = gate();
    let reason: unknown;
    const summarize = async (_: unknown, { signal }: CompactionInfo): Promise<string> => {
      begun.open();
      await aborted(signal).catch((error: unknown) => {
        reason = error;
      });
      return new Promise(() => {});
    };
    const told = rejection(compactor.compact(task(sessionId, { summarize })), Error);
    await begun.pass();
    await compactor.stop();

    expect(await told).toMatchObject({ code: 'SHUTTING_DOWN' });
    expect(reason).toMatchObject({ code: 'SHUTTING_DOWN' });
    expect(events).toEqual([]);
    expect(await headOf(adapter, sessionId)).toMatchObject({ lease: null, failure: null, number: 0 });
    const second = await startProcess(connect());
    expect(await second.compactor.compact(task(sessionId))).toMatchObject({ messages: 4 });
  });

  it.each([198, 200, 202])(
    'BOT-41 counts turns after a summary of %i messages, with as many as are kept after them',
    async (size) => {
      const { adapter, compactor } = await startProcess(create()());
      await speakInTurns(adapter, sessionId, 1, 4);
      await speak(adapter, sessionId, 5, size + 2);
      const policy = { keep: 2, summarize: () => 'all' };
      expect(await compactor.compact(task(sessionId, policy))).toMatchObject({ messages: size });
      expect(await headOf(adapter, sessionId)).toMatchObject({ through: size, turns: { desk: 2 } });
    },
  );

  it('BOT-41 does not compact an erased session', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    const summarize = async (messages: Parameters<typeof listing>[0]): Promise<string> => {
      await (adapter.sessions as AtomicSessionStoreAdapter).erase(sessionId);
      return listing(messages);
    };
    await rejection(compactor.compact(task(sessionId, { summarize })), Error);
    expect(await adapter.state.get({ ...HEAD, sessionId })).toBeNull();
  });
});

/** Checks the thresholds as after a turn, and waits for the compaction. */
async function consider(
  adapter: Process['adapter'],
  compactor: Process['compactor'],
  automatic: CompactionTask,
  turnIndex: number,
  known?: ConversationHead,
): Promise<void> {
  const { sessionId } = automatic;
  const head = known ?? (await headOf(adapter, sessionId));
  const seen: SeenConversation = {
    turnIndex,
    history: await adapter.conversations.window(sessionId, 200),
    from: 1,
    added: [],
  };
  const settledAt = new Date(await storeNow(adapter)).toISOString();
  compactor.consider(automatic, head === FIRST_HEAD ? null : head, seen, settledAt);
  await compactor.idle();
}

function isResult(event: { type: string } | undefined, before: number, after: number): boolean {
  return after > before && event?.type === 'compaction-applied';
}

async function storeNow({ state }: Process['adapter']): Promise<number> {
  const document = await state.set({ namespace: 'clock', scope: '', key: 'now', sessionId: 'clock' }, 1);
  return Date.parse(document!.accessedAt);
}
