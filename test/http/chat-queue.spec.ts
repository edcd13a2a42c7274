import 'reflect-metadata';
import * as ai6 from 'ai';
import { defineOrchestrator, type TurnContext, TurnSettledError } from 'nestjs-agent-sessions';
import { type ChatMessages, type StoppedChat } from 'nestjs-agent-sessions/http';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { isTerminal } from '../../lib/ledger/turn.js';
import { stopAnswer } from '../../sample/06-ai-chat/page/server.js';
import { textOf } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { LIVE_STORES } from '../support/running-application.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';
import { echo } from './chat-echo.js';
import { PLATFORMS } from './http-app.js';

/** Each chunk is sent before the next one is created. */
const TURNS = { events: { batchMs: 0 } };

describe.each(LIVE_STORES)('messages that are sent during an answer, over $name', ({ open }) => {
  it('AIS-38 are answered once and in order, sent at every chunk', async () => {
    const { orchestrator, model } = echo();
    const app = await startChatApp({ adapter: open(), orchestrators: [orchestrator], turns: TURNS });
    const length = (await chunksOf(await send(app, 'alone', 'One.'))).length;
    for (let at = 1; at <= length + 1; at += 1) {
      const id = `chat-${at}`;
      await sendDuring(app, id, at, 'One.', ['Two.', 'Three.']);
      expect(await shown(app, id)).toEqual(
        ['One.', 'Two.', 'Three.'].flatMap((text) => [text, `The answer to ${text}`]),
      );
      // Each prompt has all earlier messages with their answers.
      const asked = model.calls.slice(-3).map(({ prompt }) => prompt.length);
      expect(asked).toEqual([1, 3, 5]);
    }
    expect(model.calls).toHaveLength(1 + 3 * (length + 1));
  }, 60_000);

  it('AIS-38 are answered in order after a request for an approval, sent at every chunk', async () => {
    const model = scriptedModel(({ said: text, step }) =>
      text === 'Ask.' && step === 0 ? { text: 'One moment.', calls: [{ name: 'confirm' }] } : `The answer to ${text}`,
    );
    const confirm = ai6.tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'confirmed' });
    const orchestrator = defineOrchestrator({
      name: 'asking',
      intents: { answer: (turn: TurnContext) => streamReplyWith(ai6, turn, { model, tools: { confirm } }) },
    });
    const app = await startChatApp({ adapter: open(), orchestrators: [orchestrator], turns: TURNS });
    const length = (await chunksOf(await send(app, 'alone', 'Ask.'))).length;
    for (let at = 1; at <= length + 1; at += 1) {
      const id = `chat-${at}`;
      const approved = approveWhenWaiting(app, id);
      await sendDuring(app, id, at, 'Ask.', ['Two.']);
      await approved;
      const texts = await shown(app, id);
      expect([texts[0], ...texts.slice(-2)]).toEqual(['Ask.', 'Two.', 'The answer to Two.']);
      expect(texts).toHaveLength(4);
    }
  }, 60_000);

  it('AIS-38 are not answered, or keep what was shown, if they are cancelled while they begin', async () => {
    const { orchestrator, model, hold } = echo();
    const app = await startChatApp({ adapter: open(), orchestrators: [orchestrator], turns: TURNS });
    for (let round = 0; round < 20; round += 1) {
      const id = `chat-${round}`;
      const one = hold('One.');
      const first = await send(app, id, 'One.');
      await eventually(async () => (await app.turns.list({ sessionId: id, status: 'running' })).length === 1);
      const second = await send(app, id, 'Two.', 'second');
      one.open();
      // In half of the rounds, the first answer has ended.
      const ended = chunksOf(first);
      if (round % 2 === 1) await ended;
      const [{ stopped }] = await Promise.all([stop(app, { messageId: 'second' }, { path: id }), ended]);
      await chunksOf(second);
      await chunksOf(await send(app, id, 'Three.'));

      const texts = await shown(app, id);
      const [message, answer = '', ...rest] = texts.slice(2, -2);
      expect([...texts.slice(0, 2), ...texts.slice(-2)]).toEqual([
        ...['One.', 'The answer to One.'],
        ...['Three.', 'The answer to Three.'],
      ]);
      expect([message, 'The answer to Two.'.startsWith(answer), rest]).toEqual(['Two.', true, []]);
      if (!stopped) expect(answer).toBe('The answer to Two.');
      // The model sees what the page shows, without a message whose turn has not begun.
      const turn = (await app.turns.list({ sessionId: id })).find(({ request }) => request.input.text === 'Two.');
      const unseen = turn?.startedAt === undefined ? 1 : 0;
      expect(model.calls.at(-1)!.prompt).toHaveLength(texts.length - 1 - unseen);
    }
  }, 60_000);
});

describe.each(PLATFORMS)('a queued message on $name', (platform) => {
  it('AIS-38 is shown at once, and is cancelled by its id before it begins', async () => {
    const { orchestrator, model, hold } = echo();
    const app = await startChatApp({ platform, orchestrators: [orchestrator], turns: TURNS });
    const one = hold('One.');
    const first = send(app, 'one', 'One.');
    await eventually(() => model.calls.length === 1);
    const second = await send(app, 'one', 'Two.', 'second');
    const third = await send(app, 'one', 'Three.', 'third');
    expect(await shown(app, 'one')).toEqual(['One.', 'Two.', 'Three.']);

    const as = { userId: 'bob' };
    expect(await stop(app, { messageId: 'second' }, { as })).toEqual({ stopped: false });
    expect(await stop(app, { messageId: 'unknown' })).toEqual({ stopped: false });
    expect(await shown(app, 'one')).toEqual(['One.', 'Two.', 'Three.']);
    expect(await stop(app, { messageId: 'second' })).toEqual({ stopped: true });
    expect((await chunksOf(second)).map(({ type }) => type)).toEqual(['abort', 'finish']);
    expect(await stop(app, { messageId: 'second' })).toEqual({ stopped: false });
    // The page shows cancelled messages (AIS-07). The model does not see them.
    expect(await shown(app, 'one')).toEqual(['One.', 'Two.', 'Three.']);

    one.open();
    await Promise.all([chunksOf(await first), chunksOf(third)]);
    expect(await shown(app, 'one')).toEqual(['One.', 'The answer to One.', 'Two.', 'Three.', 'The answer to Three.']);
    expect(model.calls.map(({ said: text }) => text)).toEqual(['One.', 'Three.']);
    expect(model.calls[1].prompt).toHaveLength(3);
  });

  it('AIS-38 AIS-10 stops the answer to a message by the id of either, and keeps the shown part', async () => {
    const { orchestrator, hold } = echo();
    const app = await startChatApp({ platform, orchestrators: [orchestrator], turns: TURNS });
    for (const by of ['message', 'answer']) {
      const text = `Stop by ${by}.`;
      const held = hold(text);
      const begun = await chunksOf(await send(app, by, text, 'first'), ({ delta }) => delta === 'to ');
      const queued = await send(app, by, 'Two.');
      const messageId = by === 'message' ? 'first' : (begun[0].messageId as string);
      expect(await stop(app, { messageId }, { path: by })).toEqual({ stopped: true });
      await chunksOf(queued);
      held.open();
      expect(await shown(app, by)).toEqual([text, 'The answer to ', 'Two.', 'The answer to Two.']);
    }
  });

  it('AIS-38 AIS-20 is not stopped by a page that stops an answer which has just ended', async () => {
    const { orchestrator, hold } = echo();
    const app = await startChatApp({ platform, orchestrators: [orchestrator], turns: TURNS });
    const one = hold('One.');
    const two = hold('Two.');
    const first = await send(app, 'one', 'One.', 'first');
    const second = await send(app, 'one', 'Two.', 'second');
    one.open();
    const { messageId } = (await chunksOf(first))[0];
    await chunksOf(second, ({ type }) => type === 'text-delta');

    // A browser resolves the address, and sends the cookie of the user.
    const { fetch: ofNode } = globalThis;
    globalThis.fetch = (path, init) =>
      ofNode((path as string).replace('/api/chat', app.url), {
        ...init,
        headers: { ...(init?.headers as Record<string, string>), 'x-user-id': 'ann' },
      });
    try {
      await stopAnswer('one', messageId as string);
      await stopAnswer('one', 'first');
      expect(await app.turns.list({ sessionId: 'one', status: 'running' })).toHaveLength(1);
      await stopAnswer('one', 'second');
    } finally {
      globalThis.fetch = ofNode;
    }
    await eventually(async () => (await app.turns.list({ sessionId: 'one', status: 'cancelled' })).length === 1);
    two.open();
  });

  it('AIS-38 reads the id of the message from text, and ignores fields that it does not know', async () => {
    const { orchestrator, model, hold } = echo();
    const app = await startChatApp({ platform, orchestrators: [orchestrator], turns: TURNS });
    const one = hold('One.');
    const first = send(app, 'one', 'One.');
    await eventually(() => model.calls.length === 1);
    const queued = await send(app, 'one', 'Two.', 'second');
    const body = JSON.stringify({ messageId: 'second', activeStreamId: 's', assistantMessage: said('x') });
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await app.ask('POST', '/one/stop', { body: 'messageId=second', headers: form })).status).toBe(415);
    expect((await app.ask('POST', '/one/stop', { body: { messageId: 7 } })).status).toBe(400);
    expect((await app.ask('POST', '/one/stop', { body: '[]' })).status).toBe(400);
    expect(await shown(app, 'one')).toEqual(['One.', 'Two.']);
    const text = { 'content-type': 'text/plain;charset=UTF-8' };
    expect(await app.json('POST', '/one/stop', { body, headers: text })).toEqual({ stopped: true });
    one.open();
    await Promise.all([chunksOf(await first), chunksOf(queued)]);
    expect(model.calls).toHaveLength(1);
  });
});

function send(app: ChatApp, id: string, text: string, messageId?: string): Promise<Response> {
  return app.ask('POST', `/${id}`, { body: { messages: [said(text, messageId)] } });
}

/** Sends a message, and other ones when the answer has a number of chunks, or has ended. Reads all answers. */
async function sendDuring(
  app: ChatApp,
  id: string,
  at: number,
  text: string,
  others: readonly string[],
): Promise<void> {
  let chunks = 0;
  const sent: Promise<void>[] = [];
  const sendOthers = async (): Promise<void> => {
    const answers: Promise<UIChunk[]>[] = [];
    for (const other of others) {
      const response = await send(app, id, other);
      // Other tabs see the message from now on.
      expect(await shown(app, id)).toContain(other);
      answers.push(chunksOf(response));
    }
    await Promise.all(answers);
  };
  await chunksOf(await send(app, id, text), () => {
    chunks += 1;
    if (chunks === at) sent.push(sendOthers());
    return false;
  });
  if (sent.length === 0) sent.push(sendOthers());
  await Promise.all(sent);
}

/** Approves the first request of a chat if a message was queued before it: that message waits for the answer. */
async function approveWhenWaiting(app: ChatApp, sessionId: string): Promise<void> {
  await eventually(
    async () => {
      const turns = await app.turns.list({ sessionId });
      const [asking, queued] = [turns.at(0), turns.at(1)];
      if (!asking || !queued) return false;
      if (asking.status === 'waiting' && queued.status === 'queued') {
        // A message that was sent after the request may end the turn first.
        await app.turns.signal(asking.id, asking.waitingFor!.signal, { approved: true }).catch(ignoreSettled);
      }
      return isTerminal(asking.status) && isTerminal(queued.status);
    },
    { limitMs: 20_000 },
  );
}

function ignoreSettled(error: unknown): void {
  if (!(error instanceof TurnSettledError)) throw error;
}

function stop(
  app: ChatApp,
  body: object,
  { path = 'one', as }: { path?: string; as?: { userId: string } } = {},
): Promise<StoppedChat> {
  return app.json<StoppedChat>('POST', `/${path}/stop`, { body, ...(as ? { as } : {}) });
}

/** Reads the texts of the stored messages. */
async function shown(app: ChatApp, id: string): Promise<string[]> {
  const { messages } = await app.json<ChatMessages>('GET', `/${id}/messages`);
  return messages.map(textOf);
}
