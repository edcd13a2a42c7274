import fc from 'fast-check';
import { type Message } from 'nestjs-agent-sessions';
import { turnsSince, windowWithoutUndone } from '../../lib/conversation/undone-messages.js';

const SESSION = 's1';

/** Turns in the order in which they spoke, a message each or more; `null`: somebody who has no turn. */
const spoken = fc.array(fc.option(fc.nat(12), { freq: 8 }), { maxLength: 60 });
const led = fc.boolean();

describe('messages that were taken back', () => {
  it('BOT-25 the window is that of a log without them', async () => {
    await fc.assert(
      fc.asyncProperty(spoken, led, fc.uniqueArray(fc.nat(12)), fc.nat(12), async (turns, lead, undone, limit) => {
        const log = logOf(turns, lead);
        const undoneIds = undone.map((turn) => `t${turn}`);
        const given = await log.window(SESSION, limit);
        const counted = await windowWithoutUndone(log, SESSION, given, { limit }, undoneIds);

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

  it('BOT-25 nothing is read where the window has lost none, and one page where it has lost a few', async () => {
    const log = logOf([1, 1, 2, 2, 3, 3, 4, 4], false);
    const given = await log.window(SESSION, 4);
    log.reads = 0;
    expect(await windowWithoutUndone(log, SESSION, given, { limit: 4 }, ['t1', 't9'])).toBe(given);
    expect(log.reads).toBe(0);
    const counted = await windowWithoutUndone(log, SESSION, given, { limit: 4 }, ['t4']);
    expect(counted.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(log.reads).toBe(1);
    const behind = await windowWithoutUndone(log, SESSION, given, { after: 4, limit: 4 }, ['t4']);
    expect(behind.map(({ position }) => position)).toEqual([5, 6]);
    expect(log.reads).toBe(1);
  });

  it('BOT-25 reads as far back as it takes', async () => {
    const log = logOf([0, 1, 2, ...Array.from({ length: 400 }, () => 3), 4], true);
    const given = await log.window(SESSION, 3);
    const counted = await windowWithoutUndone(log, SESSION, given, { limit: 3 }, ['t3']);
    expect(counted.map(({ position }) => position)).toEqual([1, 2, 3, 4, 405]);
  });

  it('BOT-25 the turns since one of them are those of its orchestrator, and where they begin', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(4), { minLength: 1, maxLength: 40 }), fc.nat(3), async (lengths, back) => {
        // Each turn speaks once, in one piece; those with an even number are the desk's.
        const turns = lengths.flatMap((length, turn) => Array.from({ length: length * 60 + 1 }, () => turn));
        const log = logOf(turns, false, (turn) => (turn % 2 === 0 ? 'desk' : 'sales'));
        const turn = Math.max(0, lengths.length - 1 - back);
        const name = turn % 2 === 0 ? 'desk' : 'sales';
        const expected = lengths.flatMap((_, each) => (each >= turn && each % 2 === turn % 2 ? [`t${each}`] : []));

        const { turnIds, from } = await turnsSince(log, SESSION, name, `t${turn}`);
        expect([...turnIds].sort()).toEqual(expected.sort());
        expect(from).toBe(turns.indexOf(turn) + 1);
      }),
      { numRuns: 40 },
    );
    expect(await turnsSince(logOf([1, 2], false), SESSION, 'desk', 'silent')).toEqual({
      turnIds: ['silent'],
      from: null,
    });
  });
});

/** A log in a list, which counts how often it is read. @param turns who spoke, message by message; led by a system message */
function logOf(turns: readonly (number | null)[], lead: boolean, by: (turn: number) => string = () => 'desk') {
  const said = turns.map((turn) => ({
    role: 'user' as const,
    ...(turn === null ? {} : { turnId: `t${turn}`, orchestrator: by(turn) }),
  }));
  const all = lead ? [{ role: 'system' as const }, ...said] : said;
  const messages: Message[] = all.map((message, index) => {
    const position = index + 1;
    return { id: `m${position}`, position, content: String(position), createdAt: '', ...message };
  });
  return {
    messages,
    reads: 0,
    window(_: string, limit: number): Promise<Message[]> {
      this.reads += 1;
      const recent = limit > 0 ? messages.slice(-limit) : [];
      const first = limit > 0 && messages[0]?.role === 'system' && !recent.includes(messages[0]) ? [messages[0]] : [];
      return Promise.resolve([...first, ...recent]);
    },
    page(_: string, { after = 0, limit = 100 }: { after?: number; limit?: number } = {}): Promise<Message[]> {
      this.reads += 1;
      return Promise.resolve(messages.slice(after, after + limit));
    },
  };
}
