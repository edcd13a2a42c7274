import 'reflect-metadata';
import { defineOrchestrator, type OrchestratorRef, type SessionsModuleOptions } from 'nestjs-agent-sessions';
import { type ChatMessages, type StoppedChat } from 'nestjs-agent-sessions/http';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { uiStream } from '../../lib/chat/ui-stream.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { textOf, toolsOf } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { aborted, gate, LASTING_STORES, type LastingStore } from '../support/running-application.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';
import { startAssistant } from './chat-assistant.js';

describe.each(LASTING_STORES)('two instances of a chat over $name', (store) => {
  it('AIS-11 AIS-12 answers a message once, and its edits and repeats once each', async () => {
    const { orchestrator, provider } = await startAssistant((_, { requests }) => ({ text: `Answer ${requests + 1}.` }));
    const apps = await startTwo(store, orchestrator);
    const hello = { messages: [said('Hello.', 'm1')] };
    const edit = { messages: [said('Good evening.', 'm1')], messageId: 'm1' };
    for (const [at, body] of [hello, { ...hello, trigger: 'regenerate-message' }, edit].entries()) {
      const answers = await Promise.all(Array.from({ length: 8 }, (_, tab) => send(apps[tab % 2], body)));
      expect(new Set(answers)).toEqual(new Set([`Answer ${at + 1}.`]));
      expect(provider.asked).toHaveLength(at + 1);
      expect(provider.asked[at].request.messages).toHaveLength(1);
      expect(await shown(apps[1])).toEqual([textOf(body.messages[0]), `Answer ${at + 1}.`]);
    }
  });

  it('AIS-12 replaces a message that is edited again before the answer to its edit', async () => {
    const never = gate();
    const { orchestrator, provider } = await startAssistant(({ messages }, { requests }) => ({
      text: `Answer ${requests + 1}.`,
      before: (token) => (messages.at(-1)!.content === 'Second.' && token === 1 ? never.pass() : undefined),
    }));
    const apps = await startTwo(store, orchestrator);
    await send(apps[0], { messages: [said('First.', 'm1')] });
    const second = send(apps[0], { messages: [said('Second.', 'm1')], messageId: 'm1' });
    await eventually(() => provider.asked.length === 2);
    expect(await send(apps[1], { messages: [said('Third.', 'm1')], messageId: 'm1' })).toBe('Answer 3.');
    await second;
    expect(await shown(apps[0])).toEqual(['Third.', 'Answer 3.']);
    expect(provider.asked[2].request.messages).toEqual([{ role: 'user', content: 'Third.' }]);
    await send(apps[0], { messages: [said('Fourth.')] });
    expect(provider.asked[3].request.messages.map(({ content }) => content)).toEqual([
      'Third.',
      'Answer 3.',
      'Fourth.',
    ]);
    never.open();
  });

  it.each<[string, (app: ChatApp, edit: AnyUIMessage) => Promise<Response>]>([
    ['an edit is sent again', (app, edit) => app.ask('POST', '/one', { body: { messages: [edit], messageId: 'm1' } })],
    ['the page resumes', (app) => app.ask('GET', '/one/stream')],
  ])('AIS-12 ends the replaced turn when %s, after a process died before it did so', async (_, request) => {
    const { orchestrator } = await startAssistant();
    const apps = await startTwo(store, orchestrator);
    await send(apps[0], { messages: [said('Please refund order 7.', 'm1')] });
    const [{ id: replaces }] = await apps[0].turns.list({ sessionId: 'one', status: 'waiting' });
    const edit = said('Where is order 7?', 'm1');
    // The process has accepted the edit, and died.
    const input = { text: textOf(edit), metadata: { ui: { id: edit.id } } };
    await apps[0].turns.submit('assistant', input, { sessionId: 'one', replaces });

    expect(await answerIn(await request(apps[1], edit))).toContain('Order 7, a lamp');
    expect((await apps[1].turns.get(replaces))?.status).toBe('cancelled');
    expect(await apps[1].turns.list({ sessionId: 'one' })).toHaveLength(2);
    expect(await shown(apps[1])).toHaveLength(2);
  });

  it('AIS-12 keeps a request for an approval when the page resumes, if an edit was sent before it', async () => {
    const asking = gate();
    const { orchestrator } = await startAssistant((request, asked) => ({
      ...shopAssistant(request, asked),
      before: () => asking.pass(),
    }));
    const apps = await startTwo(store, orchestrator);
    const refund = await apps[0].ask('POST', '/one', { body: { messages: [said('Please refund order 7.')] } });
    const message = send(apps[0], { messages: [said('Policy?', 'm2')] });
    await eventually(async () => (await apps[0].turns.list({ sessionId: 'one' })).length === 2);
    const edit = send(apps[0], { messages: [said('What is your return policy?', 'm2')], messageId: 'm2' });
    expect(await message).toBe('');
    asking.open();
    await chunksOf(refund);

    await chunksOf(await apps[1].ask('GET', '/one/stream'));
    const turns = await apps[1].turns.list({ sessionId: 'one' });
    expect(turns.map(({ status }) => status)).toEqual(['waiting', 'cancelled', 'queued']);
    await apps[1].turns.signal(turns[0].id, turns[0].waitingFor!.signal, { approved: true });
    expect(await edit).toContain('thirty days');
  });

  it('AIS-32 keeps a request for an approval when a message that was sent before it is sent again', async () => {
    const asking = gate();
    const { orchestrator } = await startAssistant((request, asked) => ({
      ...shopAssistant(request, asked),
      before: () => asking.pass(),
    }));
    const apps = await startTwo(store, orchestrator);
    const refund = await apps[0].ask('POST', '/one', { body: { messages: [said('Please refund order 7.')] } });
    const body = { messages: [said('What is your return policy?', 'm2')] };
    const message = send(apps[0], body);
    await eventually(async () => (await apps[0].turns.list({ sessionId: 'one' })).length === 2);
    asking.open();
    await chunksOf(refund);

    // Its response begins when the message is accepted.
    const repeated = await apps[1].ask('POST', '/one', { body });
    await chunksOf(await apps[1].ask('GET', '/one/stream'));
    const [{ id, status, waitingFor }] = await apps[1].turns.list({ sessionId: 'one' });
    expect(status).toBe('waiting');
    await apps[1].turns.signal(id, waitingFor!.signal, { approved: true });
    for (const answer of [await message, await answerIn(repeated)]) expect(answer).toContain('thirty days');
  });

  it('AIS-32 ends a request for an approval when the page resumes, after a process died before it did so', async () => {
    const { orchestrator } = await startAssistant();
    const apps = await startTwo(store, orchestrator);
    await send(apps[0], { messages: [said('Please refund order 7.')] });
    const [{ id: turnId, waitingFor }] = await apps[0].turns.list({ sessionId: 'one', status: 'waiting' });
    // The process has accepted the next message, and died.
    const attributes = { 'chat.endedWait': { turnId, signals: [waitingFor!.signal] } };
    await apps[0].turns.submit('assistant', 'What is your return policy?', { sessionId: 'one', attributes });

    expect(await answerIn(await apps[1].ask('GET', '/one/stream'))).toContain('thirty days');
    expect((await apps[1].turns.get(turnId))?.status).toBe('cancelled');
  });

  it('AIS-10 keeps the whole answer that the client receives, also the part that was stored after the stop', async () => {
    const written = gate();
    const orchestrator = defineOrchestrator({
      name: 'slow',
      intents: {
        answer: async (turn) => {
          const ui = await uiStream(turn);
          for (const chunk of CHUNKS) await ui.write(chunk);
          written.open();
          return aborted(turn.signal);
        },
      },
    });
    // The first event is stored at once, and the others when the turn ends.
    const apps = await startTwo(store, orchestrator, { events: { batchMs: 10_000 } });
    const sent = send(apps[0], { messages: [said('Find it.')] });
    await written.pass();
    expect(await apps[1].json<StoppedChat>('POST', '/one/stop')).toEqual({ stopped: true });
    expect(await sent).toBe('I look.');
    const [, answer] = (await apps[1].json<ChatMessages>('GET', '/one/messages')).messages;
    expect([textOf(answer), toolsOf(answer)]).toEqual(['I look.', ['tool-find: output-available']]);
  });
});

const CALL = { toolCallId: 'call-1', toolName: 'find' };
const CHUNKS: readonly UIChunk[] = [
  { type: 'start' },
  { type: 'start-step' },
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'I look.' },
  { type: 'text-end', id: '1' },
  { type: 'tool-input-available', ...CALL, input: {} },
  { type: 'tool-output-available', toolCallId: CALL.toolCallId, output: 'It is here.' },
];

/** Starts two applications on an empty store. The second one runs no turns, because SQLite permits one worker. */
async function startTwo(
  { create }: LastingStore,
  orchestrator: OrchestratorRef,
  turns: SessionsModuleOptions['turns'] = {},
): Promise<[ChatApp, ChatApp]> {
  const open = create();
  const orchestrators = [orchestrator];
  return [
    await startChatApp({ orchestrators, adapter: open(), turns }),
    await startChatApp({ orchestrators, adapter: open(), turns, role: 'submit' }),
  ];
}

/** Sends a message and reads the answer. */
async function send(app: ChatApp, body: object): Promise<string> {
  return answerIn(await app.ask('POST', '/one', { body }));
}

/** Reads the text of an answer. */
async function answerIn(response: Response): Promise<string> {
  const chunks = await chunksOf(response);
  return chunks.flatMap(({ type, delta }) => (type === 'text-delta' ? [delta as string] : [])).join('');
}

/** Reads the stored messages. */
async function shown(app: ChatApp): Promise<string[]> {
  const { messages } = await app.json<ChatMessages>('GET', '/one/messages');
  return messages.map(textOf);
}
