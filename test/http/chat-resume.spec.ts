import 'reflect-metadata';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { memoryAdapter } from 'nestjs-agent-sessions';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { isTerminal } from '../../lib/ledger/turn.js';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { comparable } from '../chat/clients.js';
import { type FrontEnd, frontEnd, textOf, VERSIONS } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';
import { echo } from './chat-echo.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
const ANN = { 'x-user-id': 'ann' };
/** Each chunk is sent before the next one is created. */
const TURNS = { events: { batchMs: 0 } };

describe.each(VERSIONS)('a resumed chat, with ai %i', (version) => {
  it('AIS-33 shows the answer to a message of another tab as another message', async () => {
    const { app, hold } = await start();
    const chat = open(app);
    await chat.sendMessage({ text: 'One.' });
    const [, one] = structuredClone(chat.messages);
    const two = hold('Two.');
    const sent = chunksOf(await send(app, chat.id, 'Two.'));
    const resumed = chat.resumeStream();
    await eventually(() => textOf(chat.lastMessage) === 'The answer to ');
    expect(chat.messages[1]).toEqual(one);
    two.open();
    await Promise.all([sent, resumed]);
    expect(chat.messages.map(textOf)).toEqual(['One.', 'The answer to One.', 'The answer to Two.']);
    expect(chat.messages[1]).toEqual(one);
    expect(comparable(chat.lastMessage!)).toEqual(comparable((await stored(app, chat.id)).at(-1)!));
  });

  it('AIS-33 leaves a broken answer as it is if its turn has ended meanwhile, at every chunk', async () => {
    const { app, hold } = await start();
    const length = (await chunksOf(await send(app, 'alone', 'One.'))).length;
    for (let at = 1; at < length; at += 1) {
      const chat = open(app, { id: `chat-${at}`, fetch: breakingAfter(at) });
      await chat.sendMessage({ text: 'One.' });
      expect(chat.status).toBe('error');
      const before = structuredClone(chat.messages);
      await eventually(async () => {
        const [turn] = await app.turns.list({ sessionId: chat.id });
        return isTerminal(turn.status);
      });
      const two = hold('Two.');
      const sent = chunksOf(await send(app, chat.id, 'Two.'));
      const resumed = chat.resumeStream();
      // The broken answer may have the same text.
      await eventually(() => chat.messages.length > before.length && textOf(chat.lastMessage) === 'The answer to ');
      two.open();
      await Promise.all([sent, resumed]);
      expect(chat.messages.slice(0, -1)).toEqual(before);
      expect(comparable(chat.lastMessage!)).toEqual(comparable((await stored(app, chat.id)).at(-1)!));
    }
  }, 60_000);

  async function start() {
    const { orchestrator, hold } = echo(SDKS[version]);
    const app = await startChatApp({ orchestrators: [orchestrator], chat: { protocol: version }, turns: TURNS });
    return { app, hold };
  }

  function open(app: ChatApp, options: { id?: string; fetch?: typeof fetch } = {}): FrontEnd {
    return frontEnd({ version, api: app.url, headers: ANN, ...options });
  }
});

describe('a response that is continued with startIndex, by the id of the chat', () => {
  it('AIS-33 continues with the turn that it began with, though the next one runs', async () => {
    const { app, hold } = await start();
    const one = hold('One.');
    const sent = chunksOf(await send(app, 'one', 'One.'));
    const begun = await read(app, 0, 4);
    one.open();
    const whole = await sent;
    const two = hold('Two.');
    const next = chunksOf(await send(app, 'one', 'Two.'));
    await eventually(async () => (await app.turns.list({ sessionId: 'one', status: 'running' })).length === 1);

    // It breaks again.
    const more = await read(app, 4, 1);
    expect([...begun, ...more, ...(await read(app, 5))]).toEqual(whole);
    two.open();
    await next;
  });

  it('AIS-33 ends if the response may be one of several', async () => {
    const { app, hold } = await start();
    for (const text of ['One.', 'Two.']) {
      const held = hold(text);
      const sent = chunksOf(await send(app, 'one', text));
      await read(app, 0, 3);
      held.open();
      await sent;
    }
    expect((await app.ask('GET', '/one/stream?startIndex=3')).status).toBe(204);
    // Another user of the same id is not affected.
    expect((await app.ask('GET', '/one/stream?startIndex=3', { as: { userId: 'bob' } })).status).toBe(204);
    expect(await read(app, 0)).toEqual([{ type: 'finish' }]);
  });

  it('AIS-33 continues after a restart with the only answer, and ends if the next one runs', async () => {
    const { orchestrator, hold } = echo();
    const options = { adapter: memoryAdapter(), orchestrators: [orchestrator], turns: TURNS };
    const first = await startChatApp(options);
    const one = hold('One.');
    const sent = chunksOf(await send(first, 'one', 'One.'));
    const begun = await read(first, 0, 4);
    one.open();
    const whole = await sent;
    await first.close();

    const second = await startChatApp(options);
    expect([...begun, ...(await read(second, 4))]).toEqual(whole);
    await second.close();

    const third = await startChatApp(options);
    const two = hold('Two.');
    const next = chunksOf(await send(third, 'one', 'Two.'));
    await eventually(async () => (await third.turns.list({ sessionId: 'one', status: 'running' })).length === 1);
    expect((await third.ask('GET', '/one/stream?startIndex=4')).status).toBe(204);
    two.open();
    await next;
  });

  async function start() {
    const { orchestrator, hold } = echo();
    const app = await startChatApp({ orchestrators: [orchestrator], turns: TURNS });
    return { app, hold };
  }

  /** Reads chunks from an index on. @param count breaks the connection after them. Default: reads all */
  async function read(app: ChatApp, startIndex: number, count = Infinity): Promise<UIChunk[]> {
    let left = count;
    const response = await app.ask('GET', `/one/stream?startIndex=${startIndex}`);
    return chunksOf(response, () => {
      left -= 1;
      return left === 0;
    });
  }
});

function send(app: ChatApp, id: string, text: string): Promise<Response> {
  return app.ask('POST', `/${id}`, { body: { messages: [said(text)] } });
}

async function stored(app: ChatApp, id: string): Promise<readonly AnyUIMessage[]> {
  return (await app.json<ChatMessages>('GET', `/${id}/messages`)).messages;
}

/** Returns `fetch` whose first response breaks after a number of chunks. */
function breakingAfter(chunks: number): typeof fetch {
  let isFirst = true;
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!isFirst || !response.body) return response;
    isFirst = false;
    return new Response(ReadableStream.from(beginning(response.body, chunks)), response);
  };
}

async function* beginning(body: ReadableStream<Uint8Array>, chunks: number): AsyncGenerator<Uint8Array, void> {
  let left = chunks;
  let text = '';
  for await (const bytes of body.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      yield new TextEncoder().encode(`${event}\n\n`);
      if (event.includes('data: ')) left -= 1;
      if (left === 0) throw new TypeError('network error');
    }
  }
}
