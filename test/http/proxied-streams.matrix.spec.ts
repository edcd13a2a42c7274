import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { defineOrchestrator, memoryAdapter, type TurnContext } from 'nestjs-agent-sessions';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { streamReply } from '../../lib/ai-sdk/stream-reply.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { ChatResponses } from '../../lib/http/chat/chat-responses.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate } from '../support/running-application.js';
import { startNginx } from '../support/services/nginx.js';
import { giveToServer } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';
import { type HttpApp, PLATFORMS } from './http-app.js';

const WORDS = ['one ', 'two ', 'three ', 'four ', 'five'];

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

/** Starts a proxy in front of the application. @returns the address of the chat behind it */
async function behindNginx({ url }: ChatApp, settings?: string): Promise<string> {
  const folder = temporaryFolder();
  giveToServer(folder);
  const { origin, pathname } = new URL(url);
  const proxy = await startNginx(folder, origin, settings);
  stops.push(proxy.stop);
  return proxy.url + pathname;
}

interface CountingApp {
  readonly app: ChatApp;
  /** The gate before each word. */
  readonly gates: readonly Gate[];
}

/** Starts an assistant that counts, and waits for a gate before each word. */
async function startCounter(platform: (typeof PLATFORMS)[number], configure?: (app: HttpApp) => unknown) {
  const gates = WORDS.map(() => gate());
  const model = scriptedModel(() => ({
    text: (async function* () {
      for (const [index, word] of WORDS.entries()) {
        await gates[index].pass();
        yield word;
      }
    })(),
  }));
  const orchestrator = defineOrchestrator({
    name: 'counter',
    intents: { answer: (turn: TurnContext) => streamReply(turn, { model }) },
  });
  const app = await startChatApp({
    adapter: memoryAdapter(),
    orchestrators: [orchestrator],
    platform,
    ...(configure && { configure }),
  });
  return { app, gates } satisfies CountingApp;
}

function send(url: string, init?: RequestInit): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'x-user-id': 'ann', 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'chat', messages: [said('Count.')] }),
    ...init,
  });
}

/** Reads a response. */
function read(response: Response): { readonly text: () => string; readonly over: Promise<unknown> } {
  const chunks: UIChunk[] = [];
  const text = (): string => chunks.flatMap(({ delta }) => (delta as string | undefined) ?? []).join('');
  return { text, over: chunksOf(response, (chunk) => (chunks.push(chunk), false)) };
}

/** Expects that each word arrives before the model sends the next one. */
async function expectLive(gates: readonly Gate[], ...responses: readonly ReturnType<typeof read>[]): Promise<void> {
  for (const [index, word] of WORDS.entries()) {
    gates[index].open();
    await eventually(() => responses.every(({ text }) => text().endsWith(word)), { what: `the word ${word}` });
  }
  await Promise.all(responses.map(({ over }) => over));
}

describe.each(PLATFORMS)('streams of $name behind proxies', (platform) => {
  it('AIS-35 forbid proxies to buffer, to change and to store them', async () => {
    const { app, gates } = await startCounter(platform);
    gates.forEach(({ open }) => open());
    const headers = { 'x-user-id': 'ann' };
    const sent = await send(app.url);
    const resumed = await fetch(`${app.url}/chat/stream?startIndex=0`, { headers });
    for (const response of [sent, resumed]) {
      expect(response.headers.get('x-accel-buffering')).toBe('no');
      const directives = response.headers.get('cache-control')?.split(', ');
      expect(directives).toEqual(expect.arrayContaining(['private', 'no-store', 'no-transform']));
      await response.text();
    }
  });

  it('AIS-35 arrive at once behind nginx with its default settings', async () => {
    const { app, gates } = await startCounter(platform);
    const url = await behindNginx(app);
    const sent = read(await send(url));
    const resumed = read(await fetch(`${url}/chat/stream`, { headers: { 'x-user-id': 'ann' } }));
    await expectLive(gates, sent, resumed);
  });

  it('AIS-35 pass a proxy that forwards only full buffers with the next comment', async () => {
    const { app, gates } = await startCounter(platform);
    gates[0].open();
    const buffering = await behindNginx(app, 'proxy_ignore_headers X-Accel-Buffering;');
    const isHeld = await Promise.race([send(buffering).then(() => false), delay(500, true)]);
    expect(isHeld).toBe(true);

    app.app.get(ChatResponses).heartbeatMs = 50;
    const response = await fetch(`${buffering}/chat/stream`, { headers: { 'x-user-id': 'ann' } });
    await expectLive(gates, read(response));
  });

  it('AIS-35 stay open while nothing is sent for longer than the timeout of a proxy', async () => {
    const { app, gates } = await startCounter(platform);
    app.app.get(ChatResponses).heartbeatMs = 300;
    const url = await behindNginx(app, 'proxy_read_timeout 1s;');
    const response = read(await send(url));
    await delay(2500);
    await expectLive(gates, response);
  });
});

describe('streams behind compression()', () => {
  const [express] = PLATFORMS;

  it('AIS-35 arrive at once and are not compressed, unlike other responses', async () => {
    // The package has no types.
    const compression = createRequire(import.meta.url)('compression') as (options: object) => () => void;
    const { app, gates } = await startCounter(express, (nest) => {
      (nest as NestExpressApplication).use(compression({ threshold: 0 }));
    });
    const response = await send(app.url);
    expect(response.headers.get('content-encoding')).toBeNull();
    await expectLive(gates, read(response));
    const messages = await app.ask('GET', '/chat/messages');
    expect(messages.headers.get('content-encoding')).not.toBeNull();
    await messages.text();
  });
});
