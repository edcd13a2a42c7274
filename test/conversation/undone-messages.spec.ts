import fc from 'fast-check';
import { type ConversationMessage } from 'nestjs-agent-sessions';
import { type MessageSpan } from 'nestjs-agent-sessions/adapter';
import { joined, messagesSince, windowWithoutUndone } from '../../lib/conversation/undone-messages.js';

const SESSION = 's1';

/** The turn of each message, in order; `null` for a message without a turn. */
const spoken = fc.array(fc.option(fc.nat(12), { freq: 8 }), { maxLength: 60 });
const led = fc.boolean();

describe('undone messages', () => {
  it('BOT-25 returns the window of a log without them', async () => {
    await fc.assert(
      fc.asyncProperty(spoken, led, fc.uniqueArray(fc.nat(12)), fc.nat(12), async (turns, lead, undone, limit) => {
        const log = logOf(turns, lead);
        const undoneIds = undone.map((turn) => `t${turn}`);
        const given = await log.window(SESSION, limit);
        const counted = await windowWithoutUndone(log, SESSION, given, { limit }, spansOf(log.messages, undoneIds));

        const left = log.messages.filter(({ turnId }) => !undoneIds.includes(turnId ?? ''));
        const first = lead ? left.slice(0, 1) : [];
        const rest = left.slice(first.length);
        expect(limit === 0 ? [] : counted.filter(({ role }) => role !== 'system').slice(-limit)).toEqual(
          limit === 0 ? [] : rest.slice(-limit),
        );
        expect(counted.filter(({ role }) => role === 'system')).toEqual(limit === 0 ? [] : first);
      }),
    );
  });

  it('BOT-25 BOT-46 reads only the messages that the window has lost', async () => {
    const log = logOf([1, 1, 2, 2, 3, 3, 4, 4], false);
    const given = await log.window(SESSION, 4);
    log.reads = 0;
    const first = spansOf(log.messages, ['t1', 't9']);
    expect(await windowWithoutUndone(log, SESSION, given, { limit: 4 }, first)).toBe(given);
    expect(log.reads).toBe(0);
    const last = spansOf(log.messages, ['t4']);
    const counted = await windowWithoutUndone(log, SESSION, given, { limit: 4 }, last);
    expect(counted.map(({ position }) => position)).toEqual([3, 4, 5, 6]);
    expect(log.reads).toBe(1);
    const behind = await windowWithoutUndone(log, SESSION, given, { after: 4, limit: 4 }, last);
    expect(behind.map(({ position }) => position)).toEqual([5, 6]);
    expect(log.reads).toBe(1);
  });

  it('BOT-25 BOT-46 reads no more than a window, however many messages were undone', async () => {
    const log = logOf([0, 1, 2, ...Array.from({ length: 4000 }, () => 3), 4], true);
    const given = await log.window(SESSION, 3);
    log.messagesRead = 0;
    const undone = spansOf(log.messages, ['t3']);
    const counted = await windowWithoutUndone(log, SESSION, given, { limit: 3 }, undone);
    expect(counted.map(({ position }) => position)).toEqual([1, 3, 4, 4005]);
    expect(log.messagesRead).toBe(2);
  });

  it('BOT-25 BOT-46 joins adjacent and overlapping spans', () => {
    const spans = [span(9, 9), span(1, 2), span(3, 5), span(4, 4), span(7, 7)];
    expect(joined(spans)).toEqual([span(1, 5), span(7, 7), span(9, 9)]);
    expect(joined([])).toEqual([]);
  });

  it('BOT-25 returns only the messages of the turn’s orchestrator since a turn', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(4), { minLength: 1, maxLength: 40 }), fc.nat(3), async (lengths, back) => {
        // The messages of a turn are contiguous; even turns belong to the desk.
        const turns = lengths.flatMap((length, turn) => Array.from({ length: length * 60 + 1 }, () => turn));
        const log = logOf(turns, false, (turn) => (turn % 2 === 0 ? 'desk' : 'sales'));
        const turn = Math.max(0, lengths.length - 1 - back);
        const name = turn % 2 === 0 ? 'desk' : 'sales';
        const expected = lengths.flatMap((_, each) => (each >= turn && each % 2 === turn % 2 ? [`t${each}`] : []));

        const spans = await messagesSince(log, SESSION, name, `t${turn}`);
        expect(spans).toEqual(spansOf(log.messages, expected));
        const isOlder = async (other: string) => Number(other.slice(1)) < turn;
        expect(await messagesSince(log, SESSION, name, `t${turn}`, isOlder)).toEqual(spans);
      }),
      { numRuns: 40 },
    );
    expect(await messagesSince(logOf([1, 2], false), SESSION, 'desk', 'silent')).toEqual([]);
  });
});

/** The spans of the messages of turns. */
function spansOf(messages: readonly ConversationMessage[], turnIds: readonly string[]): readonly MessageSpan[] {
  const spans: MessageSpan[] = [];
  for (const { turnId, position } of messages) {
    if (!turnIds.includes(turnId ?? '')) continue;
    const last = spans.at(-1);
    if (last?.through === position - 1) spans.splice(-1, 1, span(last.from, position));
    else spans.push(span(position, position));
  }
  return spans;
}

function span(from: number, through: number): MessageSpan {
  return { from, through };
}

/** A log in an array that counts its reads. @param turns the turn of each message @param lead adds a leading system message */
function logOf(turns: readonly (number | null)[], lead: boolean, by: (turn: number) => string = () => 'desk') {
  const said = turns.map((turn) => ({
    role: 'user' as const,
    ...(turn === null ? {} : { turnId: `t${turn}`, orchestrator: by(turn) }),
  }));
  const all = lead ? [{ role: 'system' as const }, ...said] : said;
  const messages: ConversationMessage[] = all.map((message, index) => {
    const position = index + 1;
    return { id: `m${position}`, position, content: String(position), createdAt: '', ...message };
  });
  return {
    messages,
    reads: 0,
    messagesRead: 0,
    window(_: string, limit: number): Promise<ConversationMessage[]> {
      this.reads += 1;
      const recent = limit > 0 ? messages.slice(-limit) : [];
      const first = limit > 0 && messages[0]?.role === 'system' && !recent.includes(messages[0]) ? [messages[0]] : [];
      return Promise.resolve([...first, ...recent]);
    },
    page(
      _: string,
      { after = 0, limit = 100 }: { after?: number; limit?: number } = {},
    ): Promise<ConversationMessage[]> {
      this.reads += 1;
      const page = messages.slice(after, after + limit);
      this.messagesRead += page.length;
      return Promise.resolve(page);
    },
  };
}
