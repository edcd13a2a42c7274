import 'reflect-metadata';
import { type ConversationPage, type TurnView } from 'nestjs-agent-sessions/http';
import { eventually } from '../support/eventually.js';
import { backOffice, type ClientApp, clientApp, desk } from './client-app.js';
import { PLATFORMS } from './http-app.js';

describe.each(PLATFORMS)('the messages route of the turns controller on $name', (platform) => {
  let client: ClientApp;
  let sessionId: string;

  beforeAll(async () => {
    client = await clientApp({ platform });
  });

  beforeEach(async () => {
    sessionId = (await client.session()).id;
  });

  afterAll(() => client.app.close());

  it('DAY-21 returns the messages by turn, also of open, failed and cancelled turns', async () => {
    const answered = await say('hello there', 'awaiting-input');
    const failed = await say('fail', 'failed');
    const cancelled = await say('wait', 'waiting');
    await client.ask('post', `/turns/${cancelled}/cancel`, { sessionId }).expect(200);
    const waiting = await say('wait', 'waiting');
    const queued = await say('and then?', 'queued');

    const { turns, ...rest } = await page();

    expect(rest).toEqual({});
    expect(turns).toMatchObject([
      {
        id: answered,
        status: 'awaiting-input',
        reply: 'You said hello there.',
        messages: [
          { role: 'user', content: 'hello there' },
          { role: 'assistant', content: 'You said hello there.' },
        ],
      },
      { id: failed, status: 'failed', code: 'TURN_FAILED', messages: [{ role: 'user', content: 'fail' }] },
      { id: cancelled, status: 'cancelled', code: 'TURN_CANCELLED', messages: [{ role: 'user', content: 'wait' }] },
      {
        id: waiting,
        status: 'waiting',
        waitingFor: { signal: 'approval' },
        messages: [{ role: 'user', content: 'wait' }],
      },
      { id: queued, status: 'queued', messages: [{ role: 'user', content: 'and then?' }] },
    ]);
    for (const { messages, ...turn } of turns) {
      const one = await client.ask('get', `/turns/${turn.id}`, { sessionId }).expect(200);
      expect(turn).toEqual(one.body);
      expect(turn.input).toEqual({ text: messages[0].content });
      // A message that is not in the log yet, or never will be, has no time.
      expect('createdAt' in messages[0]).toBe(turn.id === answered);
    }
    await client.turns.cancel(waiting);
  });

  it('DAY-21 returns the message of a turn under the same id before and after it has settled', async () => {
    const waiting = await say('wait', 'waiting');
    const [{ messages: before }] = (await page()).turns;
    await client.turns.signal(waiting, 'approval');
    await client.turns.result(waiting);

    const [{ messages: after }] = (await page()).turns;

    expect(after).toHaveLength(2);
    expect(after[0].id).toBe(before[0].id);
  });

  it('DAY-21 returns the latest page first, and the pages before it by `before`', async () => {
    const ids: string[] = [];
    for (const text of ['a', 'b', 'fail', 'd'])
      ids.push(await say(text, text === 'fail' ? 'failed' : 'awaiting-input'));

    const last = await page('?limit=3');
    const first = await page(`?limit=3&before=${last.before}`);

    expect(last.turns.map(({ id }) => id)).toEqual(ids.slice(1));
    expect(first).toMatchObject({ turns: [{ id: ids[0] }] });
    expect(first).not.toHaveProperty('before');
  });

  it('DAY-21 returns parts and metadata of the user’s message, but neither tools nor metadata of the answer', async () => {
    const content = [{ type: 'image', url: 'cat.png' }];
    const text = { type: 'text', text: 'By post.' };
    const body = { text: '', content, metadata: { tab: 7 } };
    const { id } = (await client.ask('post', '/turns', { sessionId, body }).expect(202)).body as TurnView;
    await client.turns.result(id);
    await client.adapter.conversations.append(sessionId, [
      { id: 'm1', role: 'system', content: 'hunter2' },
      { id: 'm2', role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'find', arguments: 'hunter2' }] },
      { id: 'm3', role: 'tool', content: 'hunter2', toolCallId: 'c1' },
      { id: 'm4', role: 'assistant', content: 'Shipped.', metadata: { trace: 'hunter2' } },
      { id: 'm5', role: 'assistant', content: [{ type: 'tool-find', output: 'hunter2' }] },
      { id: 'm6', role: 'user', content: [{ type: 'tool_result', content: 'hunter2' }] },
      { id: 'm7', role: 'assistant', content: [{ type: 'dynamic-tool', output: 'hunter2' }, text] },
      { id: 'm8', role: 'assistant', content: [{ type: 'function_call', arguments: 'hunter2' }] },
      { id: 'm9', role: 'assistant', content: [{ type: 'mcp_tool_result', content: 'hunter2' }] },
      {
        id: 'm10',
        role: 'assistant',
        content: [
          { type: 'step-start' },
          { type: 'reasoning', text: 'hunter2' },
          { ...text, providerMetadata: { openai: 'hunter2' } },
        ],
      },
      { id: 'm11', role: 'assistant', content: [{ type: 'step-start' }, { type: 'tool-find', output: 'hunter2' }] },
    ]);

    const { turns } = await page();

    expect(turns[0]).toMatchObject({ input: body, messages: [{ role: 'user', content, metadata: { tab: 7 } }, {}] });
    expect(turns.slice(1)).toEqual([
      { messages: [{ id: 'm4', role: 'assistant', content: 'Shipped.', createdAt: expect.any(String) as string }] },
      { messages: [{ id: 'm7', role: 'assistant', content: [text], createdAt: expect.any(String) as string }] },
      { messages: [{ id: 'm10', role: 'assistant', content: [text], createdAt: expect.any(String) as string }] },
    ]);
    expect(JSON.stringify(turns)).not.toContain('hunter2');
  });

  it('DAY-21 returns nothing of orchestrators that clients may not use, not even their names in a cursor', async () => {
    const hidden = await client.turns.submit(backOffice.name, 'audit', { sessionId });
    await client.turns.result(hidden.id);
    const again = await client.turns.submit(backOffice.name, 'audit', { sessionId, replaces: hidden.id });
    await client.turns.result(again.id);
    await say('a', 'awaiting-input');
    await say('b', 'awaiting-input');

    const pages = [await page('?limit=1'), await page('?limit=3'), await page()];

    for (const { turns, before } of pages) {
      expect(turns.map(({ orchestrator }) => orchestrator)).toEqual(turns.map(() => desk.name));
      expect(Buffer.from(before ?? '', 'base64url').toString()).not.toContain(backOffice.name);
    }
    expect(JSON.stringify(pages)).not.toMatch(/audit|hunter2/);
  });

  it.each(['limit=0', 'limit=201', 'limit=x', 'before=', 'before=x', 'before=1&before=2', 'after=1', '__proto__=1'])(
    'DAY-21 answers 400 to the query %s',
    async (query) => {
      const refused = await client.ask('get', `/turns/messages?${query}`, { sessionId }).expect(400);
      expect(refused.body).toMatchObject({ code: 'INVALID_INPUT' });
    },
  );

  it('DAY-21 answers 404 to a session of another user', async () => {
    await client.ask('get', '/turns/messages', { as: { userId: 'bob' }, sessionId }).expect(404);
  });

  async function page(query = ''): Promise<ConversationPage> {
    return (await client.ask('get', `/turns/messages${query}`, { sessionId }).expect(200)).body as ConversationPage;
  }

  /** Submits a message and waits until its turn has the status. @returns its id */
  async function say(text: string, status: TurnView['status']): Promise<string> {
    const { id } = (await client.ask('post', '/turns', { sessionId, body: { text } }).expect(202)).body as TurnView;
    await eventually(async () => (await client.turns.get(id))?.status === status);
    return id;
  }
});
