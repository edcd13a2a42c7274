import 'reflect-metadata';
import * as ai6 from 'ai';
import {
  defineOrchestrator,
  getOrchestratorToken,
  type OrchestratorHandle,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  type SessionsErrorBody,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { frontEnd, textOf, VERSIONS } from '../chat/front-ends.js';
import { gate, LIVE_STORES } from '../support/running-application.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';

const MORE_THAN_ALL = 1_000_000;
const UNKNOWN = [404, 'TURN_NOT_FOUND'];

describe.each(LIVE_STORES)('edits of messages over $name', ({ open }) => {
  it('AIS-12 are answered again if other messages follow the same edit, and once otherwise', async () => {
    const { app, model } = await start();
    const edit = { messages: [said('Second.', 'm1')], messageId: 'm1' };
    await send(app, { messages: [said('First.', 'm1')] });
    const edited = await send(app, edit);
    expect(await send(app, edit)).toEqual(edited);
    expect(model.calls).toHaveLength(2);

    await send(app, { messages: [said('Third.', 'm3')] });
    const again = await send(app, edit);
    expect(model.calls).toHaveLength(4);
    expect(model.calls[3].prompt).toHaveLength(1);
    expect(await shown(app)).toEqual(['Second.', 'Answer 4.']);
    expect(await send(app, edit)).toEqual(again);
    expect(model.calls).toHaveLength(4);
    expect(await shown(app)).toEqual(['Second.', 'Answer 4.']);
  });

  it('AIS-12 are answered once while the same edit is open, also if other messages follow it', async () => {
    const { app, model, held } = await start();
    const edit = { messages: [said('Wait.', 'm1')], messageId: 'm1' };
    await send(app, { messages: [said('First.', 'm1')] });
    const edited = send(app, edit);
    const [begun] = await chunksOf(await app.ask('POST', '/one', { body: edit }), ({ type }) => type === 'start');
    const next = await app.ask('POST', '/one', { body: { messages: [said('Third.', 'm3')] } });
    const repeated = await app.ask('POST', '/one', { body: edit });
    held.open();
    expect(await edited).toEqual(await chunksOf(repeated));
    expect((await edited)[0]).toEqual(begun);
    await chunksOf(next);
    expect(await shown(app)).toEqual(['Wait.', 'Answer 2.', 'Third.', 'Answer 3.']);
    expect(model.calls).toHaveLength(3);
  });

  it.each(VERSIONS)('AIS-12 replace the message that they name, also under a new id, with ai %i', async (version) => {
    const { app } = await start(version);
    const chat = frontEnd({ version, id: 'one', api: app.url, headers: { 'x-user-id': 'ann' } });
    await chat.sendMessage({ text: 'First.' });
    await chat.sendMessage({ text: 'Second.' });
    const parts = [{ type: 'text', text: 'Third.' }];
    const edit = { id: 'new', parts, messageId: chat.messages[0].id } as unknown as { text: string };
    await chat.sendMessage(edit);
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
    expect(chat.messages.map(textOf)).toEqual(['Third.', 'Answer 3.']);
    expect(await storedIds(app)).toEqual(chat.messages.map(({ id }) => id));
    await chat.sendMessage({ text: 'Fourth.', messageId: chat.messages[0].id });
    expect(chat.messages.map(textOf)).toEqual(['Fourth.', 'Answer 4.']);
    expect(await storedIds(app)).toEqual(chat.messages.map(({ id }) => id));
  });

  it('AIS-12 AIS-38 are refused if they name an answer, and change nothing', async () => {
    const { app } = await start();
    await send(app, { messages: [said('First.', 'm1')] });
    const [answer] = await app.turns.list({ sessionId: 'one' });
    const response = await app.ask('POST', '/one', { body: { message: said('Second.', 'm2'), messageId: answer.id } });
    const { code, message } = (await response.json()) as SessionsErrorBody;
    expect([response.status, code]).toEqual([400, 'INVALID_INPUT']);
    expect(message).toContain('send the message of this answer as `message`');
    expect(await app.turns.list({ sessionId: 'one' })).toEqual([answer]);
  });

  it('AIS-12 are refused after the turn of their message was deleted, and change nothing', async () => {
    const { app } = await start();
    const first = said('First.', 'm1');
    const [{ messageId: answerId }] = await send(app, { messages: [first] });
    await app.app.get<SessionsAdapter>(SESSIONS_ADAPTER).turns.purgeSettled(0, MORE_THAN_ALL);
    expect(await app.turns.list({ sessionId: 'one' })).toEqual([]);
    const trigger = 'regenerate-message';
    for (const body of [
      { messages: [first], trigger },
      { messages: [first], trigger, messageId: answerId },
      { messages: [said('Second.', 'm1')], messageId: 'm1' },
      { messages: [said('Second.', 'm2')], messageId: 'm1' },
    ]) {
      const response = await app.ask('POST', '/one', { body });
      const { code, message } = (await response.json()) as SessionsErrorBody;
      expect([response.status, code]).toEqual(UNKNOWN);
      expect(message).toContain('sweep.purgeTurnsAfterSeconds');
    }
    expect(await shown(app)).toEqual(['First.', 'Answer 1.']);
  });

  it('AIS-12 BOT-25 are refused if they name a message that a fork has copied, and change nothing', async () => {
    const { app, orchestrator } = await start();
    await app.sessions.create({ id: 'one', userId: 'ann' });
    await app.turns.execute('counting', 'First.', { sessionId: 'one' });
    const handle = app.app.get<OrchestratorHandle>(getOrchestratorToken(orchestrator), { strict: false });
    await handle.fork('one', { newSessionId: 'two' });
    const messagesOfFork = async () => (await app.json<ChatMessages>('GET', '/two/messages')).messages;
    const copied = await messagesOfFork();
    const [first, answer] = copied;
    expect(copied.map(textOf)).toEqual(['First.', 'Answer 1.']);
    const [fork] = await app.turns.list({ sessionId: 'two' });
    const trigger = 'regenerate-message';
    for (const body of [
      { messages: [first], trigger },
      { messages: [first], trigger, messageId: answer.id },
      { messages: [first], trigger, messageId: fork.id },
      { messages: [said('Second.', first.id)], messageId: first.id },
    ]) {
      const response = await app.ask('POST', '/two', { body });
      const { code, message } = (await response.json()) as SessionsErrorBody;
      expect([response.status, code]).toEqual(UNKNOWN);
      expect(message).toContain(`no turn for the message ${body.messageId ?? first.id}`);
    }
    expect(await messagesOfFork()).toEqual(copied);
    expect(await app.turns.list({ sessionId: 'two' })).toEqual([fork]);
  });

  it('AIS-12 AIS-11 are new messages if the server has not received their message', async () => {
    const { app } = await start();
    // A page that could not send a message sends it again with `regenerate()`, or edits it.
    await send(app, { messages: [said('First.', 'm1')], trigger: 'regenerate-message' });
    await send(app, { messages: [said('Second.', 'm2')], messageId: 'm2' });
    expect(await shown(app)).toEqual(['First.', 'Answer 1.', 'Second.', 'Answer 2.']);
  });

  async function start(protocol: 6 | 7 = 7) {
    const held = gate();
    const model = scriptedModel(async ({ said: text, calls }) => {
      if (text === 'Wait.') await held.pass();
      return `Answer ${calls + 1}.`;
    });
    const orchestrator = defineOrchestrator({
      name: 'counting',
      intents: { answer: (turn: TurnContext) => streamReplyWith(ai6, turn, { model }) },
    });
    const app = await startChatApp({ adapter: open(), orchestrators: [orchestrator], chat: { protocol } });
    return { app, model, held, orchestrator };
  }
});

/** Sends a message and reads the answer. */
async function send(app: ChatApp, body: object): Promise<UIChunk[]> {
  const response = await app.ask('POST', '/one', { body });
  expect(response.status).toBe(200);
  return chunksOf(response);
}

/** Reads the texts of the stored messages. */
async function shown(app: ChatApp): Promise<string[]> {
  const { messages } = await app.json<ChatMessages>('GET', '/one/messages');
  return messages.map(textOf);
}

async function storedIds(app: ChatApp): Promise<string[]> {
  const { messages } = await app.json<ChatMessages>('GET', '/one/messages');
  return messages.map(({ id }) => id);
}
