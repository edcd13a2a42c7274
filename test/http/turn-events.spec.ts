import 'reflect-metadata';
import { createConnection, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  Body,
  Controller,
  Get,
  Headers,
  type MessageEvent,
  Param,
  RequestMethod,
  Res,
  Sse,
  UseGuards,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import { type Observable } from 'rxjs';
import {
  CurrentSession,
  CurrentTurn,
  defineOrchestrator,
  type EventResponse,
  memoryAdapter,
  reply,
  type Session,
  SessionGuard,
  type SessionsAdapter,
  SessionsModule,
  SessionStore,
  StoreUnavailableError,
  type Turn,
  type TurnContext,
  TurnService,
  UseSession,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Gate, gate } from '../support/running-application.js';
import { HeaderAuthGuard, type HttpApp, PLATFORMS } from './http-app.js';

/** The comment of a heartbeat. */
const COMMENT = /\n: +\n/;

@Controller('turns')
class TurnsController {
  constructor(private readonly turns: TurnService) {}

  @Sse(':id/events')
  events(@Param('id') id: string, @Headers('last-event-id') after?: string): Promise<Observable<MessageEvent>> {
    return this.turns.events(id, { after });
  }
}

describe.each(PLATFORMS)('turn events over HTTP on $name', ({ start }) => {
  let app: HttpApp;
  let adapter: SessionsAdapter;
  let url: string;
  let turns: TurnService;
  let goOn: Gate;

  beforeEach(async () => {
    goOn = gate();
    adapter = memoryAdapter();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn: TurnContext) => {
          await turn.emit({ type: 'delta', data: { text: 'line\nbreak' } });
          await turn.emit({ type: 'delta', data: 'just text' });
          await turn.emit({ type: 'ping' });
          await goOn.pass(turn.signal);
          if (turn.input.text === 'much') {
            for (let n = 0; n < 400; n += 1) await turn.emit({ type: 'delta', data: 'x'.repeat(60_000) });
          }
          await turn.emit({ type: 'delta', data: 3 });
          return reply('done');
        },
      },
    });
    app = await start({
      imports: [
        SessionsModule.forRoot({
          adapter,
          sweep: false,
          // More than a client that does not read can have in its connection.
          turns: { shutdownGraceMs: 50, events: { maxBytes: 33_554_432 } },
        }),
        SessionsModule.forFeature([desk]),
      ],
      controllers: [TurnsController],
    });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    turns = app.get(TurnService);
  });

  afterEach(async () => {
    goOn.open();
    await app.close();
  });

  it('TRN-32 sends events live, with the offset as id, and ends with the terminal event', async () => {
    const { id, sessionId } = await submit();
    const stream = await connect(id);
    expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    await eventually(() => stream.text.includes('id: 3'));
    goOn.open();
    await stream.over;

    const settled = { id, sessionId, status: 'awaiting-input', turnIndex: 0, reply: 'done' };
    expect(messagesIn(stream.text)).toEqual([
      { id: '1', event: 'delta', data: JSON.stringify({ text: 'line\nbreak' }) },
      { id: '2', event: 'delta', data: '"just text"' },
      { id: '3', event: 'ping', data: 'null' },
      { id: '4', event: 'delta', data: '3' },
      { id: '5', event: 'settled', data: JSON.stringify(settled) },
    ]);
  });

  it('TRN-32 resumes exactly after Last-Event-ID, before and after the turn is over', async () => {
    const { id } = await submit();
    const during = await connect(id, '2');
    goOn.open();
    await during.over;
    const after = await connect(id, '2');
    await after.over;
    for (const { text } of [during, after]) {
      expect(messagesIn(text).map((message) => message.id)).toEqual(['3', '4', '5']);
    }
    const last = await connect(id, '4');
    await last.over;
    expect(messagesIn(last.text).map(({ event }) => event)).toEqual(['settled']);
  });

  it('TRN-32 answers 204 to a client that received the terminal event, so that it does not reconnect', async () => {
    const { id } = await submit();
    goOn.open();
    await turns.result(id);
    for (const after of ['5', '6', '1000']) {
      const { response } = await connect(id, after);
      expect(response.status).toBe(204);
      expect(await response.text()).toBe('');
    }
  });

  it('TRN-32 answers 404 to an unknown turn and 400 to an invalid offset, before it streams', async () => {
    const { id } = await submit();
    for (const [turnId, after, status, code] of [
      ['unknown', undefined, 404, 'TURN_NOT_FOUND'],
      [id, 'abc', 400, 'INVALID_INPUT'],
    ] as const) {
      const { response } = await connect(turnId, after);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ statusCode: status, code });
    }
  });

  it('TRN-32 answers 503 while the store is unavailable, and ends a stream that has begun', async () => {
    const { id } = await submit();
    const get = jest.spyOn(adapter.turns, 'get').mockRejectedValue(new StoreUnavailableError('away'));
    const { response } = await connect(id);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'STORE_UNAVAILABLE' });

    // The store becomes unavailable after the first query.
    const turn = await (get.mockRestore(), adapter.turns.get(id));
    jest.spyOn(adapter.turns, 'get').mockRejectedValue(new StoreUnavailableError('away')).mockResolvedValueOnce(turn);
    const stream = await connect(id);
    expect(stream.response.status).toBe(200);
    await stream.over;
    expect(messagesIn(stream.text)).toEqual([]);
    jest.restoreAllMocks();
  });

  it('TRN-32 stops reading for a client that disconnects, and continues the turn', async () => {
    const { id } = await submit();
    const stream = await connect(id);
    await eventually(() => stream.text.includes('id: 3'));
    stream.leave();
    const reads = jest.spyOn(adapter.events, 'read');
    // An open stream would query the store ten times a second.
    await eventually(async () => {
      reads.mockClear();
      await new Promise((resolve) => setTimeout(resolve, 250));
      return reads.mock.calls.length === 0;
    });
    expect(await turns.get(id)).toMatchObject({ status: 'running' });
    goOn.open();
    expect(await turns.result(id)).toMatchObject({ reply: 'done' });
  });

  it('AIS-35 forbids proxies to buffer and to change a stream', async () => {
    const { id } = await submit();
    const leaving = new AbortController();
    const { headers } = await fetch(`${url}/turns/${id}/events`, { signal: leaving.signal });
    expect(headers.get('x-accel-buffering')).toBe('no');
    expect(headers.get('cache-control')).toMatch(/\bno-transform\b/);
    leaving.abort();
    goOn.open();
  });

  it('AIS-35 sends a comment of 4 KiB only when nothing was sent for 15 s', async () => {
    jest.useFakeTimers({ doNotFake: TIMERS.filter((timer) => timer !== 'setInterval' && timer !== 'clearInterval') });
    try {
      const { id } = await submit();
      const stream = await connect(id);
      await eventually(() => stream.text.includes('id: 3'));
      jest.advanceTimersByTime(14_000);
      goOn.open();
      await stream.over;
      expect(stream.text).not.toMatch(COMMENT);

      goOn = gate();
      const quiet = await submit();
      const waiting = await connect(quiet.id);
      await eventually(() => waiting.text.includes('id: 3'));
      jest.advanceTimersByTime(15_000);
      await eventually(() => COMMENT.test(waiting.text));
      expect(COMMENT.exec(waiting.text)?.[0].length).toBeGreaterThanOrEqual(4096);
      goOn.open();
      await waiting.over;
    } finally {
      jest.useRealTimers();
    }
  });

  it('TRN-32 sends a heartbeat every 15 s, which keeps the last event id', async () => {
    jest.useFakeTimers({ doNotFake: TIMERS.filter((timer) => timer !== 'setInterval' && timer !== 'clearInterval') });
    try {
      const { id } = await submit();
      const stream = await connect(id, '1');
      await eventually(() => stream.text.includes('id: 3'));
      jest.advanceTimersByTime(45_000);
      await eventually(() => stream.text.split(COMMENT).length - 1 >= 3);
      goOn.open();
      await stream.over;
      expect(messagesIn(stream.text).map((message) => [message.id, message.event])).toEqual([
        ['2', 'delta'],
        ['3', 'ping'],
        ['3', undefined],
        ['3', undefined],
        ['3', undefined],
        ['4', 'delta'],
        ['5', 'settled'],
      ]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('TRN-33 does not delay the turn or other clients for a client that does not read', async () => {
    const { id } = await submit('much');
    const { port } = new URL(url);
    const deaf = createConnection({ port: Number(port), host: '127.0.0.1' });
    deaf.pause();
    deaf.on('error', () => undefined);
    deaf.write(`GET /turns/${id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const server = app.getHttpServer() as Server;
    const connections = (): Promise<number> => promisify(server.getConnections.bind(server))();
    await eventually(async () => (await connections()) > 0);
    goOn.open();
    const shown: string[] = [];
    // Reconnect as an EventSource does: a busy machine may drop this client as well.
    while (shown.length < 405) {
      const stream = await connect(id, shown.at(-1));
      await stream.over;
      shown.push(...messagesIn(stream.text).map((message) => message.id));
    }
    expect(shown).toEqual(Array.from({ length: 405 }, (_, at) => `${at + 1}`));
    expect(await turns.get(id)).toMatchObject({ status: 'awaiting-input' });
    deaf.destroy();
  });

  it('TRN-32 TRN-14 ends open streams without a terminal event when the application stops', async () => {
    const { id } = await submit();
    const stream = await connect(id);
    await eventually(() => stream.text.includes('id: 3'));
    await app.close();
    await stream.over;
    expect(messagesIn(stream.text).map((message) => message.id)).toEqual(['1', '2', '3']);
  });

  it('TRN-32 TRN-14 stops the application although a client reconnects', async () => {
    const { id } = await submit();
    const first = await connect(id);
    await eventually(() => first.text.includes('id: 3'));
    let stopped = false;
    const closed = app.close().then(() => (stopped = true));
    await first.over;
    // Reconnect as an EventSource does, but more often than its three seconds.
    for (let visit = 0; visit < 3 && !stopped; visit += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await connect(id, '3').then(
        (stream) => stream.over,
        () => undefined,
      );
    }
    expect(stopped).toBe(true);
    await closed;
  });

  async function submit(text = 'go'): Promise<{ id: string; sessionId: string }> {
    const session = await app.get(SessionStore).create({ userId: 'ann' });
    const turn = await turns.submit('desk', text, { sessionId: session.id });
    await eventually(async () => (await adapter.events.last(turn.id)) === 3);
    return turn;
  }

  async function connect(turnId: string, after?: string): Promise<Stream> {
    const leaving = new AbortController();
    const response = await fetch(`${url}/turns/${turnId}/events`, {
      headers: after === undefined ? {} : { 'last-event-id': after },
      signal: leaving.signal,
    });
    const stream: Stream = { response, text: '', over: Promise.resolve(), leave: () => leaving.abort() };
    if (response.status === 200 && response.body) stream.over = collect(response.body, stream);
    return stream;
  }
});

interface RawResponse extends EventResponse {
  setHeader(name: string, value: string): unknown;
}

/** The routes of docs/streaming.md. */
@Controller('chat')
@UseGuards(HeaderAuthGuard, SessionGuard)
class ChatController {
  constructor(private readonly turns: TurnService) {}

  @Sse('turns/:turnId/events')
  @UseSession({ touch: false })
  events(
    @CurrentTurn() turn: Turn,
    @Res({ passthrough: true }) response: EventResponse,
    @Headers('last-event-id') after?: string,
  ): Promise<Observable<MessageEvent>> {
    return this.turns.events(turn.id, { after, response });
  }

  @Sse('say', { method: RequestMethod.POST })
  @UseSession()
  async sayAndWatch(
    @CurrentSession() session: Session,
    @Body('text') text: string,
    @Res({ passthrough: true }) response: RawResponse | { raw: RawResponse },
  ): Promise<Observable<MessageEvent>> {
    const turn = await this.turns.submit('desk', text, { sessionId: session.id });
    ('raw' in response ? response.raw : response).setHeader('Location', `/chat/turns/${turn.id}/events`);
    return this.turns.events(turn.id, { response });
  }
}

@Controller('marked')
@UseGuards(HeaderAuthGuard, SessionGuard)
@UseSession({ touch: false })
class MarkedController {
  constructor(private readonly turns: TurnService) {}

  @Sse('turns/:turnId/events')
  events(@CurrentTurn() turn: Turn, @Headers('last-event-id') after?: string): Promise<Observable<MessageEvent>> {
    return this.turns.events(turn.id, { after });
  }

  @Get('session')
  session(@CurrentSession() { id }: Session): { id: string } {
    return { id };
  }
}

describe.each(PLATFORMS)('documented routes of a store that answers after 20 ms, on $name', ({ start }) => {
  let app: HttpApp;
  let sessionId: string;
  let turnId: string;
  let unavailable: boolean;

  beforeEach(async () => {
    unavailable = false;
    const memory = memoryAdapter();
    const turns = new Proxy(memory.turns, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (name !== 'get' && name !== 'accept') return method;
        return async (...args: unknown[]): Promise<unknown> => {
          await delay(20);
          if (unavailable) throw new StoreUnavailableError('away');
          return (method as (...args: unknown[]) => unknown).apply(target, args);
        };
      },
    });
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => reply('done') } });
    app = await start({
      imports: [
        SessionsModule.forRoot({ adapter: { ...memory, turns }, sweep: false }),
        SessionsModule.forFeature([desk]),
      ],
      controllers: [ChatController, MarkedController],
    });
    await app.listen(0, '127.0.0.1');
    ({ id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' }));
    const service = app.get(TurnService);
    ({ id: turnId } = await service.submit('desk', 'hello', { sessionId }));
    await service.result(turnId);
  });

  afterEach(() => app.close());

  const ask = async (path: string, { headers, ...init }: RequestInit = {}): Promise<Response> =>
    fetch(`${await app.getUrl()}${path}`, {
      ...init,
      headers: { 'x-user-id': 'ann', 'x-session-id': sessionId, ...(headers as Record<string, string>) },
    });

  it.each(['chat', 'marked'])('TRN-32 refuses a stream of /%s by its status', async (controller) => {
    const own = `/${controller}/turns/${turnId}/events`;
    for (const [path, after, status, code] of [
      [`/${controller}/turns/unknown/events`, '0', 404, 'TURN_NOT_FOUND'],
      [own, 'abc', 400, 'INVALID_INPUT'],
    ] as const) {
      const response = await ask(path, { headers: { 'last-event-id': after } });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ statusCode: status, code });
    }
    expect((await ask(own, { headers: { 'last-event-id': '1' } })).status).toBe(204);
    expect(await (await ask(own)).text()).toContain('event: settled');

    unavailable = true;
    const response = await ask(own);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('TRN-32 sends a message, and names its stream in a header before it streams the answer', async () => {
    const response = await ask('/chat/say', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'hello' }),
    });
    expect(response.headers.get('location')).toMatch(/^\/chat\/turns\/.+\/events$/);
    expect(await response.text()).toContain('event: settled');
  });

  it('NST-10 passes the session to the other handlers of a class with a stream', async () => {
    expect(await (await ask('/marked/session')).json()).toEqual({ id: sessionId });
  });
});

/** All timers that jest can replace. */
const TIMERS = [
  'Date',
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
] as const;

interface Stream {
  readonly response: Response;
  text: string;
  over: Promise<void>;
  readonly leave: () => void;
}

async function collect(body: ReadableStream<Uint8Array>, stream: Stream): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of body) stream.text += decoder.decode(chunk, { stream: true });
  } catch {
    // The client has left.
  }
}

/** Returns the blocks between empty lines, each by field. */
function messagesIn(text: string): Record<string, string>[] {
  return text
    .split('\n\n')
    .map((block) => block.split('\n').filter((line) => line.includes(': ') && !line.startsWith(':')))
    .filter((lines) => lines.length > 0)
    .map((lines) => Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2) as [string, string])));
}
