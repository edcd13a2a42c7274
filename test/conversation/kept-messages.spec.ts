import { jest } from '@jest/globals';
import fc from 'fast-check';
import { memoryAdapter, type ConversationMessage } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { type CompactionRequest } from '../../lib/conversation/compaction-request.js';
import { viewThrough } from '../../lib/conversation/conversation-head.js';
import { keptFrom, type KeepRule, readKept } from '../../lib/conversation/kept-messages.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { wholeCutAfter } from '../../lib/conversation/tool-pairs.js';
import { compactionOf, headOf, startProcess } from './compactors.js';
import { anyLog, callsOfResults } from './histories.js';

/** A token is a character. */
const tokens = new MessageTokens((text) => text.length);

const rule: fc.Arbitrary<KeepRule> = fc.record({
  budget: fc.integer({ min: -10, max: 300 }),
  cost: fc.constantFrom(
    () => 1,
    (message: ConversationMessage) => tokens.of(message),
  ),
  preserve: fc.nat(10),
});

const request: fc.Arbitrary<CompactionRequest> = fc.oneof(
  fc.record({
    strategy: fc.constant('recent' as const),
    maxMessages: fc.integer({ min: 1, max: 20 }),
    preserveRecent: fc.option(fc.nat(10), { nil: undefined }),
  }),
  fc.record({
    strategy: fc.constant('tokens' as const),
    maxTokens: fc.integer({ min: 1, max: 300 }),
    preserveRecent: fc.option(fc.nat(10), { nil: undefined }),
  }),
  fc.record({ strategy: fc.constant('summary' as const), preserveRecent: fc.nat(10) }),
);

describe('the kept messages of a conversation', () => {
  it('STA-24 are the newest that fit; only preserved messages and their calls exceed the budget', () => {
    fc.assert(
      fc.property(anyLog, rule, (log, keep) => {
        const cut = keptFrom(log, keep);
        expect(isWhole(log, cut)).toBe(true);
        const preserved = Math.max(0, log.length - keep.preserve);
        expect(cut).toBeLessThanOrEqual(preserved);
        if (!fits(log, cut, keep)) {
          // A later cut would separate or drop preserved messages.
          for (let later = cut + 1; later <= preserved; later += 1) expect(isWhole(log, later)).toBe(false);
          return;
        }
        for (let earlier = 0; earlier < cut; earlier += 1) {
          expect(isWhole(log, earlier) && fits(log, earlier, keep)).toBe(false);
        }
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ['no result', undefined, undefined, 80],
    ['a result without a call', 9990, undefined, 1480],
    ['a result of a call among the 1,000 messages before', 9990, 9100, 599],
  ])('STA-24 are found in few messages of a long log with %s', async (_, result, call, cut) => {
    const LAST = 10_000;
    const sizes: number[] = [];
    const messageAt = (position: number): ConversationMessage => ({
      id: `m${position}`,
      position,
      createdAt: 'then',
      content: 'x',
      role: position === result ? 'tool' : 'assistant',
      ...(position === result ? { toolCallId: 'c' } : {}),
      ...(position === call ? { toolCalls: [{ id: 'c', name: 'find', arguments: {} }] } : {}),
    });
    const { conversations, checkpoints } = memoryAdapter();
    jest.spyOn(conversations, 'page').mockImplementation((_, { after = 0, limit = LAST } = {}) => {
      const page = Array.from({ length: Math.min(limit, LAST - after) }, (_, at) => messageAt(after + at + 1));
      sizes.push(page.length);
      return Promise.resolve(page);
    });
    const keep = { budget: 20, cost: () => 1, preserve: 20 };
    const between = { after: 0, before: LAST + 1 };
    const read = await readKept({ conversations, checkpoints }, 's', '', between, keep, new Map());

    expect(read).toMatchObject({ cut, all: false });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1000);
    expect(read.messages.length).toBeLessThanOrEqual(1500);
  });

  it('STA-24 begin at the first later cut that keeps calls with their results', () => {
    fc.assert(
      fc.property(anyLog, fc.nat(32), (log, at) => {
        fc.pre(at <= log.length);
        const cut = wholeCutAfter(log, at);
        expect(isWhole(log, cut)).toBe(true);
        for (let earlier = at; earlier < cut; earlier += 1) expect(isWhole(log, earlier)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it('STA-24 are whole, newest, within the budget and counted after any series of compactions', async () => {
    const process = await startProcess(memoryAdapter());
    const { adapter } = process;
    const summarize = () => 'summary';
    const compaction = compactionOf(process, { summarizer: () => ({ orchestrator: null, summarize }) });
    const viewOf = async (sessionId: string): Promise<readonly ConversationMessage[]> => {
      const log = await adapter.conversations.window(sessionId, 1000);
      const { pinned, summary, messages } = viewThrough(await headOf(adapter, sessionId), log);
      return [...pinned, ...(summary ? [summary] : []), ...messages];
    };
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(anyLog, request), { minLength: 1, maxLength: 3 }), async (rounds) => {
        const sessionId = mintId();
        let count = 0;
        for (const [drafts, asked] of rounds) {
          // Some logs are longer than a page.
          const many = rounds.length === 1 ? [...drafts, ...drafts, ...drafts, ...drafts, ...drafts] : drafts;
          const said = many.map(({ role, content, toolCalls, toolCallId }) => {
            const id = `m${(count += 1)}`;
            return { id, role, content, ...(toolCalls && { toolCalls }), ...(toolCallId && { toolCallId }) };
          });
          await adapter.conversations.append(sessionId, said);
          const before = await viewOf(sessionId);
          const outcome = await compaction.compactBy(sessionId, asked);
          const after = await viewOf(sessionId);

          expect([outcome.messagesBefore, outcome.messagesAfter]).toEqual([before.length, after.length]);
          const isLead = (message: ConversationMessage): boolean =>
            message.replaces !== undefined || (message.role === 'system' && message.position === 1);
          const [shown, kept] = [before, after].map((view) => view.filter((message) => !isLead(message)));
          expect(kept).toEqual(shown.slice(shown.length - kept.length));
          // A result whose call was dropped before does not count as one.
          expect(isWhole(shown, shown.length - kept.length)).toBe(true);
          // The leading system message and summaries are kept.
          const [was, is] = [before, after].map((view) =>
            view.filter(isLead).map(({ replaces }) => replaces !== undefined),
          );
          expect(is).toEqual(
            asked.strategy === 'summary' && outcome.compacted ? [...was.filter((one) => !one), true] : was,
          );
          if (asked.strategy === 'summary') continue;
          const { strategy, maxMessages = 0, maxTokens = 0, preserveRecent } = asked;
          const isWithin = strategy === 'recent' ? kept.length <= maxMessages : tokens.ofAll(after) <= maxTokens;
          const preserve = strategy === 'recent' ? Math.max(1, preserveRecent ?? 0) : (preserveRecent ?? 6);
          // Messages beyond the preserved ones are kept only because a preserved one needs them.
          const first = Math.max(0, shown.length - preserve);
          const others = first - (shown.length - kept.length);
          const later = Array.from({ length: Math.max(0, others) }, (_, index) => first - index);
          expect(isWithin || kept.length === 0 || later.every((index) => !isWhole(shown, index))).toBe(true);
          if (outcome.tokensAfter !== undefined) expect(outcome.tokensAfter).toBe(tokens.ofAll(after));
          if (outcome.tokensBefore !== undefined) expect(outcome.tokensBefore).toBe(tokens.ofAll(before));
        }
      }),
      { numRuns: 300 },
    );
  }, 60_000);
});

function fits(log: readonly ConversationMessage[], cut: number, { budget, cost }: KeepRule): boolean {
  return log.slice(cut).reduce((sum, message) => sum + cost(message), 0) <= budget || cut === log.length;
}

/** Returns whether a cut before this index keeps each result with its call. */
function isWhole(log: readonly ConversationMessage[], cut: number): boolean {
  const place = new Map(log.map(({ id }, index) => [id, index]));
  return [...callsOfResults(log)].every(([result, call]) => {
    return call === null || place.get(call)! >= cut || place.get(result)! < cut;
  });
}
