import { setTimeout as delay } from 'node:timers/promises';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { defineOrchestrator, type SessionsAdapter, type TurnContext } from 'nestjs-agent-sessions';
import { type ChatMessages, type StoppedChat } from 'nestjs-agent-sessions/http';
import { type ModelScript, scriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { chunksOf as storedChunks } from '../../lib/chat/ui-events.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { comparable } from '../chat/clients.js';
import { frontEnd, textOf, toolsOf, VERSIONS } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES } from '../support/running-application.js';
import { chunksOf, said, startChatApp } from './chat-app.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
const ANN = { 'x-user-id': 'ann' };

/** Yields numbered words: all at once, up to `before`. */
async function* words(prefix: string, count: number, before?: () => Promise<unknown>): AsyncGenerator<string, void> {
  for (let n = 0; n < count; n += 1) yield `${prefix}${n} `;
  await before?.();
}

function wordsOf(prefix: string, count: number): string {
  return Array.from({ length: count }, (_, n) => `${prefix}${n} `).join('');
}

describe.each(LIVE_STORES)('long answers over $name', ({ open }) => {
  it('AIS-34 stores all of 10,000 deltas that a client has seen before a stop, in batches', async () => {
    const end = gate();
    const { app, batches } = await start(() => ({ text: words('w', 10_000, () => end.pass()) }));
    const { shown, over } = read(await app.ask('POST', '/long', { body: { messages: [said('Write.')] } }));
    await eventually(() => deltasIn(shown).length === 10_000, { limitMs: 30_000 });
    expect(await app.json<StoppedChat>('POST', '/long/stop')).toEqual({ stopped: true });
    await over;
    end.open();
    const { messages } = await app.json<ChatMessages>('GET', '/long/messages');
    expect(textOf(messages[1])).toBe(wordsOf('w', 10_000));
    expect(batches.length).toBeLessThan(500);
  });

  it('AIS-34 stores exactly what a client has seen if the model is stopped while it writes', async () => {
    const { app } = await start(() => ({
      text: (async function* () {
        for (let n = 0; ; n += 1) {
          yield `w${n} `;
          if (n % 50 === 0) await delay(1);
        }
      })(),
    }));
    const { shown, over } = read(await app.ask('POST', '/long', { body: { messages: [said('Write.')] } }));
    await eventually(() => deltasIn(shown).length > 3000, { limitMs: 30_000 });
    await app.json('POST', '/long/stop');
    await over;
    const { messages } = await app.json<ChatMessages>('GET', '/long/messages');
    expect(textOf(messages[1])).toBe(deltasIn(shown).join(''));
    expect(shown.at(-1)).toMatchObject({ type: 'finish' });
  });

  it('AIS-34 fails an answer that never ends when it exceeds maxStepBytes', async () => {
    let words = 0;
    const text = async function* () {
      for (; words < 1_000_000; words += 1) {
        yield `w${words} `;
        if (words % 50 === 0) await delay(1);
      }
    };
    const { app } = await start(() => ({ text: text() }), { maxStepBytes: 20_000 });
    const chunks = await chunksOf(await app.ask('POST', '/long', { body: { messages: [said('Write.')] } }));
    expect(deltasIn(chunks).join('').length).toBeLessThanOrEqual(20_000);
    expect(chunks.at(-1)).toMatchObject({ type: 'error' });
    const [{ status, error, failures }] = await app.turns.list({ sessionId: 'long' });
    expect({ status, code: error?.code, failures }).toEqual({ status: 'failed', code: 'TOO_LARGE', failures: 1 });
    const asked = words;
    await delay(50);
    expect(words).toBe(asked);
  });

  it('AIS-34 stores all of an answer above maxReplyBytes that is stopped while it waits for its user', async () => {
    const text = wordsOf('a', 300);
    const { app } = await start(() => ({ text, calls: [{ name: 'ask' }] }), { maxReplyBytes: 500 });
    await chunksOf(await app.ask('POST', '/long', { body: { messages: [said('Ask.')] } }));
    expect(await app.turns.list({ sessionId: 'long', status: 'waiting' })).toHaveLength(1);
    expect(await app.json<StoppedChat>('POST', '/long/stop')).toEqual({ stopped: true });
    const { messages } = await app.json<ChatMessages>('GET', '/long/messages');
    expect(textOf(messages[1])).toBe(text);
    expect(toolsOf(messages[1])).toEqual(['tool-ask: output-denied']);
  });

  describe.each(VERSIONS)('beyond turns.events.maxBytes, with ai %i', (version) => {
    it('AIS-34 shows nothing more live, and the rest of each step when it is stored', async () => {
      const [isStored, isFound] = [gate(), gate()];
      let hasWritten = false;
      const { app, adapter } = await start(
        ({ step }) => {
          if (step > 0) return { text: words('b', 300) };
          const text = words('a', 300, async () => {
            hasWritten = true;
            await isStored.pass();
          });
          return { text, calls: [{ name: 'find' }] };
        },
        { version, maxBytes: 10_000, find: () => isFound.pass().then(() => 'found') },
      );
      const chat = frontEnd({ version, api: app.url, headers: ANN });
      const sent = chat.sendMessage({ text: 'Write.' });
      await eventually(() => hasWritten && textOf(chat.lastMessage).includes('a50 '));
      const live = await unchanged(() => textOf(chat.lastMessage));
      expect(live).not.toBe('');
      expect(wordsOf('a', 299).startsWith(live)).toBe(true);

      isStored.open();
      await eventually(() => toolsOf(chat.lastMessage)[0] === 'tool-find: input-available');
      expect(textOf(chat.lastMessage)).toBe(wordsOf('a', 300));
      isFound.open();
      await sent;
      expect([chat.status, chat.error]).toEqual(['ready', undefined]);
      expect(textOf(chat.lastMessage)).toBe(wordsOf('a', 300) + wordsOf('b', 300));
      const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
      expect(messages.map(comparable)).toEqual(chat.messages.map(comparable));

      const { id } = chat.lastMessage!;
      const deltas = deltasIn(storedChunks(await adapter.events.read(id, 0, 10_000)));
      expect(deltas.length).toBeLessThan(200);
      expect(await app.turns.get(id)).toMatchObject({ status: 'awaiting-input', failures: 0 });
    });

    it('AIS-34 keeps only what was shown when the answer is stopped', async () => {
      const end = gate();
      const { app } = await start(() => ({ text: words('a', 300, () => end.pass()) }), { version, maxBytes: 5000 });
      const chat = frontEnd({ version, api: app.url, headers: ANN });
      const sent = chat.sendMessage({ text: 'Write.' });
      await eventually(() => textOf(chat.lastMessage).includes('a20 '));
      const live = await unchanged(() => textOf(chat.lastMessage));
      await app.json('POST', `/${chat.id}/stop`);
      await sent;
      end.open();
      const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
      expect(textOf(messages[1])).toBe(live);
      expect(textOf(chat.lastMessage)).toBe(live);
    });

    it('AIS-34 AIS-14 shows the answer of the last attempt once', async () => {
      const { app } = await start(
        ({ repeats }) => {
          if (repeats === 0) return { text: words('a', 300), error: new Error('The provider fails.') };
          return { text: words('b', 300) };
        },
        { version, maxBytes: 5000 },
      );
      const chat = frontEnd({ version, api: app.url, headers: ANN });
      await chat.sendMessage({ text: 'Write.' });
      if (version === 6) {
        // The connection was cut, because clients of version 6 cannot replace a step.
        expect(chat.status).toBe('error');
        await chat.resumeStream();
      }
      await eventually(async () => (await app.turns.list({ sessionId: chat.id }))[0].status === 'awaiting-input');
      const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
      expect(messages.map(textOf)).toEqual(['Write.', wordsOf('b', 300)]);
      if (version === 7) expect(messages.map(comparable)).toEqual(chat.messages.map(comparable));
    });

    it('AIS-34 AIS-16 shows requests for approvals and results if nothing is live', async () => {
      const { app } = await start(
        ({ step }) => (step === 0 ? { text: 'May I?', calls: [{ name: 'ask' }] } : { text: 'Thanks.' }),
        { version, maxBytes: 1 },
      );
      const chat = frontEnd({ version, api: app.url, headers: ANN });
      await chat.sendMessage({ text: 'Ask.' });
      expect(toolsOf(chat.lastMessage)).toEqual(['tool-ask: approval-requested']);
      expect(textOf(chat.lastMessage)).toBe('May I?');
      const { approval } = chat.lastMessage!.parts.at(-1) as unknown as { readonly approval: { readonly id: string } };
      await chat.addToolApprovalResponse({ id: approval.id, approved: true });
      await eventually(() => chat.status === 'ready' && textOf(chat.lastMessage).includes('Thanks.'));
      expect(toolsOf(chat.lastMessage)).toEqual(['tool-ask: output-available']);
      expect(textOf(chat.lastMessage)).toBe('May I?Thanks.');
    });
  });

  async function start(
    script: ModelScript,
    {
      version = 7,
      maxBytes,
      maxReplyBytes,
      maxStepBytes,
      find = () => 'found',
    }: {
      readonly version?: 6 | 7;
      readonly maxBytes?: number;
      readonly maxReplyBytes?: number;
      readonly maxStepBytes?: number;
      readonly find?: () => unknown;
    } = {},
  ) {
    const sdk = SDKS[version];
    const adapter = open();
    const batches: number[] = [];
    const model = scriptedModel(script);
    const inputSchema = z.object({});
    const tools = {
      find: sdk.tool({ inputSchema, execute: find }),
      ask: sdk.tool({ inputSchema, needsApproval: true, execute: () => 'asked' }),
    };
    const orchestrator = defineOrchestrator({
      name: 'writer',
      intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools }) },
    });
    const retry = { backoff: { type: 'fixed', delayMs: 1 } } as const;
    const app = await startChatApp({
      adapter: noting(adapter, (size) => batches.push(size)),
      orchestrators: [orchestrator],
      chat: { protocol: version },
      turns: {
        retry,
        ...(maxBytes === undefined ? {} : { events: { maxBytes } }),
        ...(maxReplyBytes === undefined ? {} : { maxReplyBytes }),
        ...(maxStepBytes === undefined ? {} : { maxStepBytes }),
      },
    });
    return { app, adapter, batches };
  }
});

/** The store, with a function that is called with the size of each batch of events. */
function noting(adapter: SessionsAdapter, note: (size: number) => void): SessionsAdapter {
  const append: SessionsAdapter['events']['append'] = (hold, batch, ttlMs) => {
    note(batch.events.length);
    return adapter.events.append(hold, batch, ttlMs);
  };
  const events = Object.create(adapter.events, { append: { value: append } }) as SessionsAdapter['events'];
  return Object.create(adapter, { events: { value: events } }) as SessionsAdapter;
}

/** Reads a response, up to its end. */
function read(response: Response): { readonly shown: UIChunk[]; readonly over: Promise<unknown> } {
  const shown: UIChunk[] = [];
  return { shown, over: chunksOf(response, (chunk) => (shown.push(chunk), false)) };
}

function deltasIn(chunks: readonly UIChunk[]): string[] {
  return chunks.flatMap(({ type, delta }) => (type === 'text-delta' ? [delta as string] : []));
}

/** Returns the value once it has not changed for 200 ms. */
async function unchanged(value: () => string): Promise<string> {
  for (;;) {
    const before = value();
    await delay(200);
    if (value() === before) return before;
  }
}
