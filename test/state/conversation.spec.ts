import {
  InvalidInputError,
  type MessageDraft,
  SessionStateService,
  StateSerializationError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { CONVERSATION_NAMESPACE } from '../../lib/ledger/namespaces.js';
import { FIRST_HEAD, HEAD, readHead } from '../../lib/conversation/conversation-head.js';
import { anyText, describeStores } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { rejection, startApplication } from '../support/running-application.js';
import { collect, sessionState } from '../support/session-state.js';
import { Echo } from '../support/application.js';

/** Messages with every field. */
const MESSAGES: readonly MessageDraft[] = [
  { role: 'system', content: 'Be kind.', name: 'rules', metadata: { version: 2, tags: ['a', null] } },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'Where is it? 🙂' },
      { type: 'image', url: 'x', nested: { a: [1] } },
    ],
  },
  {
    role: 'assistant',
    content: null,
    toolCalls: [
      { id: 'c1', name: 'find', arguments: { order: 7 } },
      { id: 'c2', name: 'find', arguments: '{"a":' },
    ],
  },
  { role: 'tool', content: '', toolCallId: 'c1', id: 'given-id' },
];

describeStores('the conversation module', (store) => {
  let state: SessionStateService;
  let id: string;

  beforeEach(() => {
    state = sessionState(store());
    id = mintId();
  });

  const said = async (count: number): Promise<void> => {
    await state.conversation.append(
      id,
      Array.from({ length: count }, (_, n) => ({ role: 'user', content: `${n + 1}` })),
    );
  };
  const positions = (messages: readonly { position: number }[]): number[] => messages.map(({ position }) => position);

  it('STA-03 returns a message with all its fields', async () => {
    const stored = await state.conversation.append(id, MESSAGES);
    expect(stored).toEqual(
      MESSAGES.map((message, index) => ({ id: anyText(), ...message, position: index + 1, createdAt: anyText() })),
    );
    expect(await state.conversation.list(id)).toEqual(stored);
    expect(await collect(state.conversation.export(id))).toEqual(stored);
    const { data } = (await state.describe({ sessionId: id, includeData: true, stores: ['conversation'] })).stores[0];
    expect(data).toEqual({ items: stored });
  });

  it('STA-03 lists a page, and a window', async () => {
    await state.conversation.append(id, MESSAGES);
    await said(6);
    const { conversation } = state;
    expect(positions(await conversation.list(id, { after: 3, limit: 2 }))).toEqual([4, 5]);
    expect(positions(await conversation.list(id, { after: 10 }))).toEqual([]);
    expect(positions(await conversation.list(id, { window: 2 }))).toEqual([1, 9, 10]);
    await said(250);
    expect(positions(await collect(conversation.export(id)))).toEqual(Array.from({ length: 260 }, (_, n) => n + 1));
  });

  it('STA-03 FIX-48 lists a window that an instance of a DTO selects', async () => {
    class WindowDto {
      readonly window = 2;
    }
    await said(4);
    expect(positions(await state.conversation.list(id, new WindowDto()))).toEqual([3, 4]);
  });

  it('STA-03 writes nothing when an unknown session is read', async () => {
    const calls: string[] = [];
    const { conversation } = sessionState(recordingAdapter(store(), calls));
    expect(await conversation.list(id)).toEqual([]);
    expect(await conversation.list(id, { window: 5 })).toEqual([]);
    expect(await collect(conversation.export(id))).toEqual([]);
    expect(await conversation.append(id, [])).toEqual([]);
    expect(calls).toEqual(['conversations.page', 'conversations.window', 'conversations.page']);
    expect(await conversation.clear(id)).toBe(false);
    expect(await store().state.count({ namespace: CONVERSATION_NAMESPACE, sessionId: id })).toBe(0);
    expect(await store().conversations.sessions(id.slice(0, -1), 1)).not.toEqual([id]);
  });

  it('STA-03 clears the messages, and restarts positions at 1', async () => {
    await said(3);
    await state.tools.set(id, 'search', 'k', 1);
    expect(await state.conversation.clear(id)).toBe(true);
    expect(await state.conversation.list(id)).toEqual([]);
    expect(await state.conversation.clear(id)).toBe(false);
    await said(1);
    expect(positions(await state.conversation.list(id))).toEqual([1]);
    expect(await state.tools.get(id, 'search', 'k')).toMatchObject({ value: 1 });
  });

  it('STA-23 fences a running compaction when the conversation is cleared', async () => {
    const head = {
      ...FIRST_HEAD,
      id: 'first',
      number: 3,
      through: 2,
      hiddenThrough: 2,
      lease: { holder: 'x', until: 'y' },
    };
    const spent = { desk: { promptTokens: 1, completionTokens: 2, totalTokens: 3 } };
    await said(3);
    const { state: documents } = store();
    const stored = await documents.set({ ...HEAD, sessionId: id }, { ...head, spent, turns: { desk: 4 } } as never);
    expect(await state.conversation.clear(id)).toBe(true);
    expect(await documents.set({ ...HEAD, sessionId: id }, {}, { ifVersion: stored!.version })).toBeNull();
    // No turn ran in the lane, so its head is deleted.
    expect(await documents.get({ ...HEAD, sessionId: id })).toBeNull();
  });

  it.each<[string, unknown]>([
    ['messages that are not a list', 'hi'],
    ['a message of null', [null]],
    ['an unknown role', [{ role: 'robot', content: 'hi' }]],
    ['no content', [{ role: 'user' }]],
    ['a message with a position', [{ role: 'user', content: 'hi', position: 1 }]],
    [
      'an invalid message after a valid one',
      [
        { role: 'user', content: 'hi' },
        { role: 'user', content: 7 },
      ],
    ],
  ])('STA-03 rejects %s, and adds nothing', async (_, messages) => {
    await rejection(state.conversation.append(id, messages as never), InvalidInputError);
    expect(await state.conversation.list(id)).toEqual([]);
  });

  it.each<[string, (of: SessionStateService['conversation'], at: string) => Promise<unknown>]>([
    ['an empty session id', (log) => log.append('', [{ role: 'user', content: 'hi' }])],
    ['an empty session id to clear', (log) => log.clear('')],
    ['an empty session id to list', (log) => log.list('')],
    ['a window of 0', (log, at) => log.list(at, { window: 0 })],
    ['a window and a page', (log, at) => log.list(at, { window: 1, limit: 2 })],
    ['a page limit that is too large', (log, at) => log.list(at, { limit: 1001 })],
    ['a page of null', (log, at) => log.list(at, null as never)],
    ['a page that is a string', (log, at) => log.list(at, 'window' as never)],
  ])('STA-09 rejects %s', async (_, call) => {
    await rejection(call(state.conversation, id), InvalidInputError);
    expect(() => state.conversation.export('')).toThrow(InvalidInputError);
  });

  it('STA-03 rejects values that JSON cannot represent', async () => {
    const messages = [{ role: 'user', content: 'hi', metadata: { at: new Date() } }];
    await rejection(state.conversation.append(id, messages as never), StateSerializationError);
    expect(await state.conversation.list(id)).toEqual([]);
  });
});

describe('the conversation of turns', () => {
  it('STA-03 STA-23 contains the messages of turns; a reset starts a new log and keeps the counters', async () => {
    const { app, adapter, session, handle } = await startApplication({ orchestrators: [Echo] });
    const state = app.get(SessionStateService, { strict: false });
    const id = await session();
    await handle(Echo).execute('hi', { sessionId: id });
    expect((await state.conversation.list(id)).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'hi'],
      ['assistant', 'You said: hi'],
    ]);
    const spent = { desk: { promptTokens: 1, completionTokens: 2, totalTokens: 3 } };
    const head = { ...FIRST_HEAD, id: 'first', number: 3, through: 2, spent, turns: { desk: 4 } };
    await adapter.state.set({ ...HEAD, sessionId: id }, head as never);

    expect(await state.reset({ sessionId: id, stores: ['conversation'] })).toMatchObject({ cleared: ['conversation'] });
    const after = readHead((await adapter.state.get({ ...HEAD, sessionId: id }))!);
    // The tokens that summaries used stay in the head until they are reported.
    expect(after).toEqual({ ...FIRST_HEAD, id: 'first', number: 4, log: anyText(), spent, turns: { desk: 4 } });
    expect(after.log).not.toBe('');
    expect(await state.describe({ sessionId: id, stores: ['conversation'] })).toMatchObject({
      stores: [{ exists: false, messageCount: 0 }],
    });
    expect(await state.reset({ sessionId: id, stores: ['conversation'] })).toMatchObject({ cleared: [] });

    await handle(Echo).execute('again', { sessionId: id });
    expect((await state.conversation.list(id)).map(({ position, content }) => [position, content])).toEqual([
      [1, 'again'],
      [2, 'You said: again'],
    ]);
  });
});
