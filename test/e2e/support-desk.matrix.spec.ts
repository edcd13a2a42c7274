import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ConversationMessage, type TurnResult } from 'nestjs-agent-sessions';
import { SampleProcess } from '../support/sample-process.js';
import { temporaryFolder } from '../support/stores.js';
import { Customer } from './support-desk-client.js';
import { withLedger } from './stored-turns.js';

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
const ID = expect.stringMatching(/^[0-9a-f]{32}$/) as string;

describe('the support desk over HTTP', () => {
  const file = join(temporaryFolder(), 'support-desk.db');
  let sample: SampleProcess;

  beforeAll(async () => {
    sample = await SampleProcess.start(file);
  });

  afterAll(() => sample.stop('SIGKILL'));

  it('NST-11 opens a session for the user who asks', async () => {
    const { status, body } = await sample.ask('/sessions', { method: 'POST', headers: { 'x-user-id': 'ann' } });

    expect(status).toBe(201);
    expect(body).toEqual({
      id: ID,
      userId: 'ann',
      state: 'created',
      createdAt: TIME,
      lastActivityAt: (body as { createdAt: string }).createdAt,
      attachedSurfaces: [],
      metadata: {},
      version: 1,
    });
  });

  it('TRN-10 answers a message with the settled turn, which can be asked for again', async () => {
    const ann = await Customer.arrive(sample);

    const { status, body } = await ann.trySay('Where is order 7?');

    const { id } = body as TurnResult;
    expect(status).toBe(201);
    expect(body).toEqual({
      id: ID,
      sessionId: ann.sessionId,
      status: 'awaiting-input',
      turnIndex: 0,
      reply: 'Order 7 is shipped.',
    });
    expect(await ann.turn(id)).toEqual({
      id,
      sessionId: ann.sessionId,
      status: 'awaiting-input',
      turnIndex: 0,
      reply: 'Order 7 is shipped.',
      acceptedAt: TIME,
      settledAt: TIME,
    });
  });

  it('TRN-01 keeps the conversation and the session', async () => {
    const ann = await Customer.arrive(sample);
    const { id: first } = await ann.say('hello');
    const { id: second } = await ann.say('bye');

    expect(await ann.messages()).toMatchObject([
      { position: 1, role: 'user', content: 'hello', turnId: first },
      { position: 2, role: 'assistant', content: expect.stringContaining('Hello!') as string, turnId: first },
      { position: 3, role: 'user', content: 'bye', turnId: second },
      { position: 4, role: 'assistant', content: 'Goodbye!', turnId: second },
    ]);
    expect((await ann.ask('/messages?after=1&limit=2')).body).toMatchObject([{ position: 2 }, { position: 3 }]);
    expect(await ann.session()).toMatchObject({ id: ann.sessionId, userId: 'ann', state: 'active' });
    expect((await ann.turn(second)).status).toBe('completed');
  });

  it('NST-05 says that it is well while its store answers', async () => {
    expect(await sample.ask('/health')).toEqual({ status: 200, body: { status: 'ok' } });
  });

  it('BOT-01 talks a refund through in three steps', async () => {
    const ann = await Customer.arrive(sample);

    const replies = [];
    for (const text of ['I want a refund', 'order 42', 'it is order 8', 'It is too small.', 'perhaps', 'yes']) {
      replies.push((await ann.say(text)).reply);
    }

    expect(replies).toEqual([
      'Which order is the refund for?',
      'I know no order 42. Which order is the refund for?',
      'Why do you want a refund of order 8?',
      'A refund of order 8, because: “It is too small.” Shall I pay it out? (yes or no)',
      'Please answer yes or no: shall I pay the refund out?',
      expect.stringMatching(/^Done, the money is on its way \(receipt R-8-\d+\)\.$/),
    ]);
    expect((await ann.say('where is order 8?')).reply).toBe('Order 8 is delivered.');
  });

  it('ORC-28 pays out in one step alone, which only a yes leads to', async () => {
    const ann = await Customer.arrive(sample);
    const conversation = [
      ['I want a refund for order 8', 'Why do you', 'reason', ['note_reason']],
      ['Yes, it is too small.', 'A refund of', 'confirm', ['drop_refund']],
      ['What do you mean?', 'Please answer', 'confirm', ['drop_refund']],
      // A yes with another request: no payment, and the next message needs its own yes.
      ['Yes. But where is order 7?', 'Order 7 is', 'pay out', ['pay_out']],
      ['Well?', 'Please answer', 'confirm', ['drop_refund']],
      ['No.', 'All right, no', 'help', ['begin_refund']],
      ['Yes.', 'I did not', 'help', ['begin_refund']],
      ['I want a refund for order 9', 'Why do you', 'reason', ['note_reason']],
      ['It came late.', 'A refund of', 'confirm', ['drop_refund']],
      ['Yes, please.', 'Done, the money', 'help', ['begin_refund']],
      ['Yes, please.', 'I did not', 'help', ['begin_refund']],
    ] as const;

    for (const [text, reply, name, tools] of conversation) {
      expect((await ann.say(text)).reply).toMatch(reply);
      expect((await ann.ask('/overview')).body).toMatchObject({ step: { name, tools } });
    }
  });

  it('NST-11 hides the turns, messages and session of other users', async () => {
    const ann = await Customer.arrive(sample);
    const { id } = await ann.say('hello');
    const asBob = { headers: { 'x-user-id': 'bob' } };

    const unknown = await ann.ask(`/turns/${'f'.repeat(32)}`);
    const foreign = await ann.ask(`/turns/${id}`, asBob);
    expect(foreign).toEqual({
      status: 404,
      body: {
        ...(unknown.body as object),
        message: `Turn not found: ${id}. Check the id. Old settled turns may have been deleted.`,
        turnId: id,
      },
    });
    for (const path of ['/session', '/messages']) {
      expect(await ann.ask(path, asBob)).toMatchObject({ status: 404, body: { code: 'SESSION_NOT_FOUND' } });
    }
  });

  it('DAY-19 lists the open conversations of a user by their first message, and continues one of them', async () => {
    const [first, empty, last] = [
      await Customer.arrive(sample, 'cora'),
      await Customer.arrive(sample, 'cora'),
      await Customer.arrive(sample, 'cora'),
    ];
    await first.say('Where is order 7?');
    await last.say('Where is order 8?');
    const entry = ({ sessionId }: Customer, title?: string): object => ({
      id: sessionId,
      lastActivityAt: TIME,
      ...(title !== undefined && { title }),
    });
    const asCora = { headers: { 'x-user-id': 'cora' } };
    expect((await sample.ask('/sessions', asCora)).body).toEqual({
      conversations: [entry(last, 'Where is order 8?'), entry(first, 'Where is order 7?'), entry(empty)],
    });

    const { headers } = await fetch(`${sample.url}/session`, {
      method: 'POST',
      headers: { ...first.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ surface: 'web' }),
    });
    const [cookie] = headers.getSetCookie();
    expect(cookie).toMatch(/^support_desk_session=\w+; Max-Age=31536000; .*HttpOnly; SameSite=Strict$/);
    const overview = await sample.ask('/overview', { headers: { 'x-user-id': 'cora', cookie } });
    expect(overview.body).toMatchObject({
      session: { id: first.sessionId, attachedSurfaces: ['web'] },
      turns: [{ input: 'Where is order 7?' }],
    });
  });

  it('TRN-05 gives the same turn for the same idempotency key, and 422 for another message under it', async () => {
    const ann = await Customer.arrive(sample);
    const key = { 'idempotency-key': 'message-1' };

    const answers = await Promise.all(Array.from({ length: 5 }, () => ann.say('Where is order 7?', key)));
    const again = await ann.say('Where is order 7?', key);
    const other = await ann.trySay('Where is order 8?', key);
    const elsewhere = await (await Customer.arrive(sample)).say('Where is order 8?', key);

    expect(new Set([...answers, again].map(({ id }) => id)).size).toBe(1);
    expect(again).toEqual(answers[0]);
    expect(other).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_CONFLICT', turnId: again.id } });
    expect(elsewhere.id).not.toBe(again.id);
    expect(await ann.messages()).toHaveLength(2);
  });

  it('TRN-02 TRN-03 runs what twenty clients send at once one by one, in the order of acceptance', async () => {
    const ann = await Customer.arrive(sample);

    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => ann.say(`Where is order ${i}?`)));

    expect(results.map(({ turnIndex }) => turnIndex).sort((a, b) => a - b)).toEqual([...Array(20).keys()]);
    const turns = await withLedger(file, ({ turns }) => turns.list({ sessionId: ann.sessionId }));
    expect(turns.map(({ position, turnIndex }) => [position, turnIndex])).toEqual(
      [...Array(20).keys()].map((i) => [i + 1, i]),
    );
    // Acceptance never goes back, and each began when the one before had settled.
    turns.slice(1).forEach((turn, i) => {
      const before = turns[i];
      expect(turn.acceptedAt >= (before?.acceptedAt ?? '')).toBe(true);
      expect((turn.startedAt ?? '') >= (before?.settledAt ?? '?')).toBe(true);
    });
    expect(await ann.messages()).toMatchObject(
      turns.flatMap(({ id, request, reply }) => [
        { turnId: id, role: 'user', content: request.input.text },
        { turnId: id, role: 'assistant', content: reply?.text },
      ]),
    );
  });

  it('TRN-04 loses none of a thousand turns in a hundred sessions', async () => {
    const customers = await Promise.all(Array.from({ length: 100 }, (_, i) => Customer.arrive(sample, `user-${i}`)));

    await Promise.all(
      customers.map((customer) =>
        Promise.all(Array.from({ length: 10 }, (_, i) => customer.say(`Where is order ${i}?`))),
      ),
    );

    for (const customer of customers) {
      const messages = await customer.messages();
      expect(messages.map(({ role }) => role).join()).toBe(Array(10).fill('user,assistant').join());
      expect(questionsOf(messages).sort()).toEqual([...Array(10).keys()].map((i) => `Where is order ${i}?`));
    }
  }, 60_000);

  it('NST-01 TRN-32 the command that it prints streams an answer into a shell, and continues the same session', async () => {
    const [line, ...others] = sample.curlLines;
    expect(others).toEqual([]);
    const run = async (command: string): Promise<string> =>
      (await promisify(execFile)('bash', ['-e', '-c', command])).stdout;

    const stdout = await run(line);
    const [, reply] = /"reply":"(.*?)"/.exec(stdout) ?? [];
    expect(stdout.match(/^event: \w+/gm)?.at(-1)).toBe('event: settled');
    const words = [...stdout.matchAll(/"text":"(.*?)"/g)].map(([, text]) => text);
    expect(words.length).toBeGreaterThan(20);
    expect(words.join('').trimEnd()).toBe(reply);

    expect(await run(line.replace('What is your policy?', 'Hello'))).toContain('Hello again!');
  });
});

function questionsOf(messages: readonly ConversationMessage[]): unknown[] {
  return messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}
