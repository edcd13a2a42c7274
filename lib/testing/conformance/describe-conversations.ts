import { type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { HOSTILE_NAMES } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of ConversationLog (STA-03). */
export function describeConversations(context: ConformanceContext): void {
  describe('conversations', () => {
    const message = (patch: Partial<NewMessage> = {}): NewMessage => ({
      id: context.id(),
      role: 'user',
      content: 'hello',
      ...patch,
    });

    it('STA-03 numbers messages from 1 without gaps, and sets their times', async () => {
      const { conversations } = context.adapter;
      const sessionId = context.id();
      const given = [message(), message({ role: 'assistant', content: 'hi' }), message()];
      const appended = [
        ...(await conversations.append(sessionId, given.slice(0, 2))),
        ...(await conversations.append(sessionId, [])),
        ...(await conversations.append(sessionId, given.slice(2))),
      ];

      expect(appended).toEqual(
        given.map((draft, index) => ({ ...draft, position: index + 1, createdAt: appended[index].createdAt })),
      );
      expect(appended[0].createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(appended[0]).not.toHaveProperty('turnId');
      expect(appended[0]).not.toHaveProperty('orchestrator');
      expect(await conversations.page(sessionId)).toEqual(appended);
    });

    it('STA-03 appends thousands of messages in one call', async () => {
      const { conversations } = context.adapter;
      const sessionId = context.id();
      const given = Array.from({ length: 10_000 }, (_, n) => message({ content: String(n) }));
      expect((await conversations.append(sessionId, given)).at(-1)).toMatchObject({ position: 10_000 });

      expect(await conversations.page(sessionId, { after: 8000, limit: 1 })).toMatchObject([{ content: '8000' }]);
      expect(await conversations.window(sessionId, 1)).toMatchObject([{ content: '9999' }]);
    });

    it('STA-03 returns every message unchanged', async () => {
      const given: NewMessage[] = [
        message({ role: 'system', content: '' }),
        message({ content: 'NUL \u0000, line\nbreak, \u2028, lone \ud83d and \udc69 surrogates' }),
        message({ content: HOSTILE_NAMES.join('\n'), name: '👩 o\'brien "x" \u0000' }),
        message({
          content: [
            { type: 'text', text: 'a\u0000b' },
            { type: 'image', url: 'x:y', size: { w: 1, h: null } },
          ],
        }),
        message({ content: [] }),
        message({ metadata: { source: { page: [1, null, { deep: true }] }, '': '\ud83d' } }),
        message({
          role: 'assistant',
          content: null,
          toolCalls: [
            { id: 'call-1', name: 'search', arguments: '{"q": "a\\u0000"}' },
            { id: 'call-2', name: 'book', arguments: { nights: 2, rooms: [] } },
          ],
        }),
        message({ role: 'tool', content: '{"ok":true}', toolCallId: 'call-1', name: 'search' }),
        message({ role: 'tool', content: 'none', toolCallId: '\u0000\ud83d' }),
      ];
      const sessionId = context.id();
      const appended = await context.adapter.conversations.append(sessionId, given);
      const read = await context.adapter.conversations.page(sessionId);

      expect(read).toEqual(given.map((draft, index) => ({ ...draft, ...placeOf(appended[index]) })));
      expect(appended).toEqual(read);
    });

    it('BOT-25 stores the speaker of a message if it names one', async () => {
      const { conversations } = context.adapter;
      const sessionId = context.id();
      const given = [message({ orchestrator: HOSTILE_NAMES[0] }), message({ orchestrator: null }), message()];
      const appended = await conversations.append(sessionId, given);

      expect(appended.map(({ orchestrator }) => orchestrator)).toEqual([HOSTILE_NAMES[0], undefined, undefined]);
      expect(await conversations.page(sessionId)).toEqual(appended);
    });

    it('STA-03 copies messages on write and on read', async () => {
      const sessionId = context.id();
      const given = message({ content: [{ type: 'text', text: 'a' }], metadata: { list: [1] } });
      const handedOut = [
        given,
        ...(await context.adapter.conversations.append(sessionId, [given])),
        ...(await context.adapter.conversations.page(sessionId)),
        ...(await context.adapter.conversations.window(sessionId, 1)),
      ];
      for (const each of handedOut) {
        (each.content as object[]).push({ type: 'text', text: 'b' });
        (each.metadata?.list as number[]).push(2);
      }
      expect(await context.adapter.conversations.page(sessionId)).toMatchObject([
        { content: [{ type: 'text', text: 'a' }], metadata: { list: [1] } },
      ]);
    });

    it('STA-03 keeps the messages of each concurrent append together, in one order for all readers', async () => {
      const { conversations } = context.adapter;
      const sessionId = context.id();
      await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          conversations.append(sessionId, [message({ content: `${n} a` }), message({ content: `${n} b` })]),
        ),
      );
      const log = await conversations.page(sessionId);

      expect(positions(log)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
      const heads = log.filter((_, index) => index % 2 === 0).map(({ content }) => content as string);
      expect(new Set(heads).size).toBe(20);
      expect(log.map(({ content }) => content)).toEqual(heads.flatMap((head) => [head, head.replace('a', 'b')]));
    });

    it('STA-03 pages through a log in order', async () => {
      const { conversations } = context.adapter;
      const sessionId = await log(7);

      expect(positions(await conversations.page(sessionId, { limit: 3 }))).toEqual([1, 2, 3]);
      expect(positions(await conversations.page(sessionId, { after: 3, limit: 3 }))).toEqual([4, 5, 6]);
      expect(positions(await conversations.page(sessionId, { after: 6, limit: 3 }))).toEqual([7]);
      expect(positions(await conversations.page(sessionId, { after: 5 }))).toEqual([6, 7]);
      expect(await conversations.page(sessionId, { after: 7 })).toEqual([]);
    });

    it('STA-03 returns 100 messages by default', async () => {
      expect(positions(await context.adapter.conversations.page(await log(103)))).toHaveLength(100);
    });

    it('STA-03 returns the last messages as a window', async () => {
      const { conversations } = context.adapter;
      const sessionId = await log(5);

      expect(positions(await conversations.window(sessionId, 2))).toEqual([4, 5]);
      expect(positions(await conversations.window(sessionId, 5))).toEqual([1, 2, 3, 4, 5]);
      expect(positions(await conversations.window(sessionId, 50))).toEqual([1, 2, 3, 4, 5]);
      expect(await conversations.window(sessionId, 0)).toEqual([]);
    });

    it('STA-03 starts a window with the system message that starts the log, once', async () => {
      const { conversations } = context.adapter;
      const sessionId = await log(5, message({ role: 'system', content: 'Be brief.' }));

      expect(positions(await conversations.window(sessionId, 2))).toEqual([1, 4, 5]);
      expect(positions(await conversations.window(sessionId, 4))).toEqual([1, 2, 3, 4, 5]);
      expect(positions(await conversations.window(sessionId, 5))).toEqual([1, 2, 3, 4, 5]);
      expect((await conversations.window(sessionId, 1))[0]).toMatchObject({ role: 'system', content: 'Be brief.' });
    });

    it('STA-03 starts a window with no other system message', async () => {
      const { conversations } = context.adapter;
      const sessionId = await log(1);
      await conversations.append(sessionId, [message({ role: 'system' }), message(), message()]);

      expect(positions(await conversations.window(sessionId, 2))).toEqual([3, 4]);
    });

    it('STA-03 writes nothing when it reads an unknown session', async () => {
      const { conversations } = context.adapter;
      const sessionId = context.id();

      expect(await conversations.page(sessionId)).toEqual([]);
      expect(await conversations.window(sessionId, 10)).toEqual([]);
      expect(await context.sessions.fetchById(sessionId)).toBeNull();
      const [first] = await conversations.append(sessionId, [message()]);
      expect(first.position).toBe(1);
    });

    it('STA-03 keeps the logs of sessions separate', async () => {
      const { conversations } = context.adapter;
      const [one, two] = [await log(2), await log(1)];
      const [next] = await conversations.append(two, [message()]);

      expect(next.position).toBe(2);
      expect(positions(await conversations.page(one))).toEqual([1, 2]);
    });

    /** Creates a session with a log of some messages. */
    async function log(length: number, first = message()): Promise<string> {
      const sessionId = context.id();
      const rest = Array.from({ length: length - 1 }, () => message());
      await context.adapter.conversations.append(sessionId, [first, ...rest]);
      return sessionId;
    }
  });
}

function placeOf({ position, createdAt }: ConversationMessage): Pick<ConversationMessage, 'position' | 'createdAt'> {
  return { position, createdAt };
}

function positions(messages: readonly ConversationMessage[]): number[] {
  return messages.map(({ position }) => position);
}
