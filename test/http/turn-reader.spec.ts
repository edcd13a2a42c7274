import 'reflect-metadata';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import {
  defineOrchestrator,
  memoryAdapter,
  PermanentTurnError,
  reply,
  SessionsModule,
  SessionStore,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';
import {
  type EventStreamFetch,
  readAnswer,
  readTurnEvents,
  type TurnConnectionState,
  ResponseError,
  type TurnEventsOptions,
  type TurnStreamEvent,
} from 'nestjs-agent-sessions/client';
import { type ConversationPage, type ConversationTurn } from 'nestjs-agent-sessions/http';
import { type EventStreamMessage, EventStreamParser } from '../../lib/client/event-stream.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate, rejection } from '../support/running-application.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { type HttpApp, PLATFORMS } from './http-app.js';
import { headerPrincipal, headersOf, OpenGuard } from './state-app.js';

interface Delta {
  readonly type: 'delta';
  readonly data: { readonly text: string };
}

const delta = (text: string): Delta => ({ type: 'delta', data: { text } });

describe.each(PLATFORMS)('the reader of turn events with $name', ({ start }) => {
  let app: HttpApp;
  let turns: TurnService;
  let proxy: TcpProxy;
  let sessionId: string;
  let goOn: Gate;

  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn: TurnContext) => {
        const { text } = turn.input;
        if (text === 'fail') {
          await turn.emit(delta('Hel'));
          throw new PermanentTurnError('hunter2');
        }
        if (text === 'retry') {
          for (const part of turn.attempt === 1 ? ['Hello', ' th'] : ['Hello ', 'again']) await turn.emit(delta(part));
          if (turn.attempt === 1) {
            await goOn.pass(turn.signal);
            throw new Error('hunter2');
          }
          return reply('Hello again');
        }
        if (text === 'trouble') {
          for (const data of [null, 'No lamp.', { code: 7 }]) await turn.emit({ type: 'error', data });
          await turn.emit(delta('But a chair.'));
          return reply('But a chair.');
        }
        for (const part of ['One, ', 'two, ']) await turn.emit(delta(part));
        await goOn.pass(turn.signal);
        await turn.emit(delta('three.'));
        return reply('One, two, three.');
      },
    },
  });

  beforeAll(async () => {
    app = await start({
      imports: [
        SessionsModule.forRoot({
          adapter: memoryAdapter(),
          sweep: false,
          principal: headerPrincipal,
          turns: { shutdownGraceMs: 50, retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } },
          controllers: { turns: { guards: [OpenGuard], orchestrators: [desk] } },
        }),
        SessionsModule.forFeature([desk]),
      ],
    });
    await app.listen(0, '127.0.0.1');
    turns = app.get(TurnService);
  });

  beforeEach(async () => {
    goOn = gate();
    proxy = await TcpProxy.start(await app.getUrl());
    sessionId = (await app.get(SessionStore).create({ userId: 'ann' })).id;
  });

  afterEach(async () => {
    goOn.open();
    await proxy.stop();
  });

  afterAll(() => app.close());

  it('DAY-21 reads a large event in small parts in linear time', async () => {
    const parser = new EventStreamParser();
    const bytes = new TextEncoder().encode(`id: 1\r\ndata: ${'x'.repeat(4_194_304)}\r\n\r\n`);
    const found: string[] = [];
    const startedAt = process.cpuUsage();
    for (let at = 0; at < bytes.length; at += 1000) {
      for (const { data } of parser.push(bytes.subarray(at, at + 1000))) found.push(data);
    }
    const { user, system } = process.cpuUsage(startedAt);

    expect(found.map((data) => data.length)).toEqual([4_194_304]);
    // Quadratic work takes more than ten seconds.
    expect((user + system) / 1000).toBeLessThan(3000);
  });

  it.each([
    ['one by one', 1],
    ['in pairs', 2],
  ])('DAY-21 reads every kind of line end, %s', (_, size) => {
    const parser = new EventStreamParser();
    const bytes = new TextEncoder().encode('data: a\r\n\r\ndata: b\r\rdata: c\n\nid: 7\r\ndata: d\ndata: e\r\n\r\n');
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (__, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    );

    expect(parts.flatMap((part) => parser.push(part)).map(({ data, id }) => [data, id])).toEqual([
      ['a', ''],
      ['b', ''],
      ['c', ''],
      ['d\ne', '7'],
    ]);
  });

  it.each([2 ** 31, Infinity])(
    'DAY-21 waits for data without a limit if idleTimeoutMs is %d',
    async (idleTimeoutMs) => {
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          await delay(20);
          controller.enqueue(new TextEncoder().encode('id: 1\nevent: settled\ndata: {}\n\n'));
          controller.close();
        },
      });
      const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      const types: string[] = [];
      for await (const { type } of readTurnEvents({ url: 'http://desk/', fetch, idleTimeoutMs })) types.push(type);

      expect(types).toEqual(['settled']);
    },
  );

  it.each([
    ['seconds', '40', 40_000],
    ['a date', new Date(Date.now() + 3_000_000).toUTCString(), 2_900_000],
    ['a date in the past', new Date(0).toUTCString(), 0],
    ['nonsense', 'soon', 0],
  ])('DAY-21 waits as long as Retry-After asks, as %s', async (_, header, delayMs) => {
    const abort = new AbortController();
    const states: TurnConnectionState[] = [];
    const onConnection = (state: TurnConnectionState): void => {
      states.push(state);
      abort.abort();
    };
    const fetch = async () => new Response('', { status: 503, headers: { 'retry-after': header } });
    const events = readTurnEvents({ url: 'http://desk/', fetch, signal: abort.signal, onConnection });
    expect(await events.next()).toMatchObject({ done: true });

    const [{ delayMs: asked = 0 }] = states;
    expect(asked).toBeGreaterThanOrEqual(delayMs);
    if (delayMs === 0) expect(asked).toBeLessThan(1000);
  });

  it('DAY-21 reads every event once and in order, over broken connections and a server that is away', async () => {
    const { id } = await submit('count');
    const states: TurnConnectionState[] = [];
    const onConnection = (state: TurnConnectionState): void => {
      states.push(state);
      if (state.failures !== 2 || state.isOpen) return;
      proxy.restore();
      goOn.open();
    };
    let text = '';
    const offsets: number[] = [];
    for await (const event of readTurnEvents<Delta>({ ...source(id), onConnection })) {
      offsets.push(event.offset);
      if (event.type === 'delta') text += event.data.text;
      if (event.offset === 2) proxy.cut();
      if (event.type === 'settled') expect(event.data).toMatchObject({ id, reply: text });
    }

    expect(offsets).toEqual([1, 2, 3, 4]);
    expect(text).toBe('One, two, three.');
    const [error, delayMs] = [expect.anything() as unknown, expect.any(Number) as number];
    expect(states).toEqual([
      { isOpen: true, failures: 0 },
      { isOpen: false, failures: 1, delayMs, error },
      { isOpen: false, failures: 2, delayMs, error },
      { isOpen: true, failures: 2 },
    ]);
  });

  it('DAY-21 shows the text of a new attempt once it is as long as that of the attempt before', async () => {
    const { id } = await submit('retry');
    const shown: [string, string][] = [];
    for await (const { text, event } of readAnswer<Delta>(source(id))) {
      shown.push([event.type, text]);
      if (text === 'Hello th') goOn.open();
    }

    expect(shown).toEqual([
      ['delta', 'Hello'],
      ['delta', 'Hello th'],
      ['attempt', 'Hello th'],
      ['delta', 'Hello th'],
      ['delta', 'Hello again'],
      ['settled', 'Hello again'],
    ]);
  });

  it('DAY-21 redraws a chat while a turn runs, and in the same way after it has settled', async () => {
    const { id } = await submit('count');
    const [open] = await redraw();
    expect(open).toMatchObject({ id, input: { text: 'count' }, messages: [{ role: 'user', content: 'count' }] });
    expect(open.messages).toHaveLength(1);
    expect(open).not.toHaveProperty('settledAt');

    goOn.open();
    const answers = await all(readAnswer(source(id)));

    const [settled] = await redraw();
    expect(settled.messages.map(({ content }) => content)).toEqual(['count', answers.at(-1)?.text]);
    expect(settled.messages[0].id).toBe(open.messages[0].id);
  });

  it('DAY-21 reads events of type `error` of the handler, and those that follow', async () => {
    const { id } = await submit('trouble');
    // Without a limit, a reader that takes them for a lost connection would read them forever.
    const onConnection = ({ isOpen }: TurnConnectionState): void => {
      if (!isOpen) throw new Error('The connection was lost.');
    };
    const events = await all(readTurnEvents({ ...source(id), onConnection }));

    expect(
      events.map(({ offset, type, data }) => (type === 'settled' ? [offset, type] : [offset, type, data])),
    ).toEqual([
      [1, 'error', null],
      [2, 'error', 'No lamp.'],
      [3, 'error', { code: 7 }],
      [4, 'delta', { text: 'But a chair.' }],
      [5, 'settled'],
    ]);
    const answers = await all(readAnswer({ ...source(id), onConnection }));
    expect(answers.map(({ text }) => text)).toEqual(['', '', '', 'But a chair.', 'But a chair.']);
  });

  it('DAY-21 keeps the text of an answer that failed', async () => {
    const { id } = await submit('fail');
    const answers = await all(readAnswer(source(id)));

    expect(answers.map(({ text }) => text)).toEqual(['Hel', 'Hel']);
    expect(answers.map(({ settled }) => settled)).toEqual([
      undefined,
      { id, sessionId, status: 'failed', code: 'TURN_FAILED' },
    ]);
  });

  it('DAY-21 resumes after an offset, and ends with `settled` also if the client has received all events', async () => {
    const { id } = await submit('count');
    goOn.open();
    await turns.result(id);

    expect((await all(readTurnEvents({ ...source(id), after: 2 }))).map(({ offset }) => offset)).toEqual([3, 4]);
    for (const after of [3, 4, 1000]) {
      expect(await all(readTurnEvents({ ...source(id), after }))).toMatchObject([{ type: 'settled', offset: 4 }]);
    }
  });

  it.each(['signal', 'break'] as const)('DAY-21 ends the request, but not the turn, by %s', async (way) => {
    const { id } = await submit('count');
    const leaving = new AbortController();
    const seen: TurnStreamEvent[] = [];
    for await (const event of readTurnEvents({ ...source(id), signal: leaving.signal })) {
      seen.push(event);
      if (seen.length < 2) continue;
      if (way === 'break') break;
      // While the next event is awaited.
      setImmediate(() => leaving.abort());
    }

    expect(seen).toHaveLength(2);
    await eventually(() => proxy.connections().length === 0);
    goOn.open();
    expect(await turns.result(id)).toMatchObject({ reply: 'One, two, three.' });
  });

  it('DAY-21 reads nothing with a signal that is aborted', async () => {
    expect(await all(readTurnEvents({ ...source('any'), signal: AbortSignal.abort() }))).toEqual([]);
  });

  it('DAY-21 rejects with the code of a response that a reconnect does not change', async () => {
    const { id } = await submit('fail');
    const refused = (options: Partial<TurnEventsOptions>) =>
      rejection(all(readTurnEvents({ ...source(id), ...options })), ResponseError);

    expect(await refused({ url: source('of-nobody').url })).toMatchObject({ status: 404, code: 'TURN_NOT_FOUND' });
    expect(await refused({ headers: { 'x-session-id': sessionId } })).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await refused({ headers: headersOf({ userId: 'ann' }) })).toMatchObject({ code: 'SESSION_ID_MISSING' });
    expect(await refused({ url: new URL('/nothing', proxy.url).href })).toMatchObject({
      status: 404,
      code: 'UNEXPECTED_ANSWER',
    });
  });

  async function redraw(): Promise<readonly ConversationTurn[]> {
    const response = await fetch(new URL('/turns/messages', proxy.url), { headers: source('any').headers });
    return ((await response.json()) as ConversationPage).turns;
  }

  function submit(text: string) {
    return turns.submit(desk.name, text, { sessionId });
  }

  function source(turnId: string) {
    return {
      url: new URL(`/turns/${turnId}/events`, proxy.url).href,
      headers: { ...headersOf({ userId: 'ann' }), 'x-session-id': sessionId },
    };
  }
});

/** Responds to a request. */
type Respond = (response: ServerResponse, request: IncomingMessage) => void;

const SETTLED = `event: settled\nid: 9\ndata: ${JSON.stringify({ status: 'completed', reply: null })}\n\n`;

const respond =
  (status: number, type: string, body: string, headers: Record<string, string> = {}): Respond =>
  (response) =>
    response.writeHead(status, { 'content-type': type, ...headers }).end(body);

const nothing: Respond = (response) => response.writeHead(204).end();
const stream = (body: string): Respond => respond(200, 'text/event-stream', body);

describe('the reader of turn events with servers and proxies that fail', () => {
  let server: Server;
  let url: string;
  /** The responses to the next requests. */
  let script: Respond[];
  /** The header `last-event-id` of each request. */
  let resumed: (string | undefined)[];

  beforeEach(async () => {
    script = [];
    resumed = [];
    server = createServer((request, response) => {
      resumed.push(request.headers['last-event-id'] as string | undefined);
      const next = script.shift();
      if (next) next(response, request);
      else response.writeHead(410).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/turns/t1/events`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it('DAY-21 reconnects during outages, and waits as long as the server asks', async () => {
    const states: TurnConnectionState[] = [];
    script = [
      respond(502, 'text/html', '<html>Bad gateway</html>'),
      respond(503, 'application/json', '{"code":"STORE_UNAVAILABLE","message":"Later."}', { 'retry-after': '2' }),
      stream('event: delta\nid: 1\ndata: "a"\n\n'),
      stream(SETTLED),
    ];
    const events = await all(readTurnEvents({ url, onConnection: (state) => void states.push(state) }));

    expect(events).toMatchObject([
      { offset: 1, type: 'delta', data: 'a' },
      { offset: 9, type: 'settled' },
    ]);
    expect(resumed).toEqual([undefined, undefined, undefined, '1']);
    expect(states).toMatchObject([
      { isOpen: false, failures: 1, error: { status: 502, code: 'UNEXPECTED_ANSWER' } },
      { isOpen: false, failures: 2, error: { status: 503, code: 'STORE_UNAVAILABLE' } },
      { isOpen: true, failures: 2 },
      { isOpen: false, failures: 1 },
      { isOpen: true, failures: 1 },
    ]);
    expect(states[1].delayMs).toBeGreaterThanOrEqual(2000);
    expect(states[3]).not.toHaveProperty('error');
  });

  it('DAY-21 reconnects after a status 500 of a proxy, but not of the application', async () => {
    script = [
      respond(500, 'text/plain', 'connect ECONNREFUSED'),
      respond(500, 'application/json', '{"code":"CORRUPT_RECORD","message":"The stored turn is corrupt."}'),
    ];
    const error = await rejection(all(readTurnEvents({ url })), ResponseError);

    expect(error).toMatchObject({ status: 500, code: 'CORRUPT_RECORD' });
    expect(resumed).toHaveLength(2);
  });

  it('DAY-21 reconnects if the server is silent for too long', async () => {
    script = [
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('event: delta\nid: 4\ndata: 1\n\n');
      },
      stream(SETTLED),
    ];
    const events = await all(readTurnEvents({ url, idleTimeoutMs: 1000 }));

    expect(events.map(({ offset }) => offset)).toEqual([4, 9]);
    expect(resumed).toEqual([undefined, '4']);
  });

  it('DAY-21 reconnects after an error of the stream, whose id is not an offset', async () => {
    script = [
      stream('event: delta\nid: 5\ndata: 1\n\nevent: error\nid: 1\ndata: Internal server error\n\n'),
      stream(SETTLED),
    ];
    const events = await all(readTurnEvents({ url }));

    expect(events.map(({ type }) => type)).toEqual(['delta', 'settled']);
    expect(resumed).toEqual([undefined, '5']);
  });

  it('DAY-21 does not repeat what a turn waits for after a reconnect', async () => {
    const waiting = (signal: string): string =>
      `event: waiting\nid: 3\ndata: ${JSON.stringify({ id: 't1', sessionId: 's1', signals: [signal] })}\n\n`;
    script = [stream(waiting('a')), stream(waiting('a') + waiting('a')), stream(waiting('b') + SETTLED)];
    const events = await all(readTurnEvents({ url }));

    expect(events).toMatchObject([
      { type: 'waiting', data: { signals: ['a'] } },
      // The turn waits again.
      { type: 'waiting', data: { signals: ['a'] } },
      { type: 'waiting', data: { signals: ['b'] } },
      { type: 'settled' },
    ]);
    expect(resumed).toEqual([undefined, '3', '3']);
  });

  it('DAY-21 calls a function for the headers of each connection, and rejects with its error', async () => {
    const tokens = ['first', 'second'];
    const sent: unknown[] = [];
    const end: Respond = (response, { headers }) => {
      sent.push(headers.authorization);
      stream('')(response, {} as IncomingMessage);
    };
    script = [end, end];
    const headers = async () => {
      const token = tokens.shift();
      if (token === undefined) throw new Error('You are signed out.');
      return { authorization: token };
    };

    await expect(all(readTurnEvents({ url, headers }))).rejects.toThrow('You are signed out.');
    expect(sent).toEqual(['first', 'second']);
  });

  it('DAY-21 ends with its signal while the function for the headers is pending', async () => {
    const leaving = new AbortController();
    const headers = (): Promise<never> => {
      setImmediate(() => leaving.abort());
      return new Promise(() => undefined);
    };

    expect(await all(readTurnEvents({ url, headers, signal: leaving.signal }))).toEqual([]);
    expect(resumed).toEqual([]);
  });

  it('DAY-21 reconnects and ends although fetch ignores the signal of the request', async () => {
    const leaving = new AbortController();
    let requests = 0;
    const deaf: EventStreamFetch = () => {
      requests += 1;
      if (requests === 2) setImmediate(() => leaving.abort());
      return new Promise(() => undefined);
    };

    expect(await all(readTurnEvents({ url, fetch: deaf, idleTimeoutMs: 10, signal: leaving.signal }))).toEqual([]);
    expect(requests).toBe(2);
  });

  it('DAY-21 ends with the error that onConnection throws', async () => {
    const onConnection = ({ failures }: TurnConnectionState): void => {
      if (failures > 1) throw new Error('The server is away.');
    };
    script = [respond(503, 'text/plain', ''), respond(503, 'text/plain', '')];

    await expect(all(readTurnEvents({ url, onConnection }))).rejects.toThrow('The server is away.');
  });

  it.each([
    [respond(200, 'text/html', '<html>Please sign in</html>'), 'Received: text/html. Check the URL.'],
    [stream('event: delta\nid: 1\ndata: abc\n\n'), 'The data of event delta must be JSON. Received: abc'],
    [respond(403, 'text/plain', 'hunter2'), 'Received: 403.'],
    [nothing, 'Received none.'],
  ] as const)('DAY-21 rejects an unexpected answer: %#', async (answer, message) => {
    script = [answer];
    const error = await rejection(all(readTurnEvents({ url })), ResponseError);

    expect(error).toMatchObject({ name: 'ResponseError', code: 'UNEXPECTED_ANSWER' });
    expect(error.message).toContain(message);
  });

  it('DAY-21 rejects a fetch that does not stream', async () => {
    script = [stream(SETTLED)];
    const whole: EventStreamFetch = async (...call) => {
      const { status, headers } = await fetch(...call);
      return { status, headers, body: null, text: () => Promise.resolve('') };
    };
    const error = await rejection(all(readTurnEvents({ url, fetch: whole })), ResponseError);

    expect(error.message).toContain('does not stream response bodies');
  });

  it('DAY-21 rejects a relative URL outside browsers, instead of reconnecting', async () => {
    await expect(all(readTurnEvents({ url: '/turns/t1/events' }))).rejects.toThrow(/Invalid URL/);
  });

  it('DAY-21 takes the text of other events with textOf', async () => {
    script = [stream(`event: line\nid: 1\ndata: "a"\n\nevent: delta\nid: 2\ndata: "b"\n\n${SETTLED}`)];
    const textOf = ({ type, data }: { readonly type: string; readonly data: unknown }) =>
      type === 'line' ? `${String(data)}\n` : undefined;
    const answers = await all(readAnswer({ url, textOf }));

    expect(answers.map(({ text }) => text)).toEqual(['a\n', 'a\n', 'a\n']);
  });
});

describe('the parser of event streams', () => {
  it('DAY-21 parses streams with all line ends, from parts of any size', () => {
    const text = [
      ': comment',
      '',
      'id: 1',
      'event: delta',
      'data: "größer 🦄"',
      '',
      'id: 2',
      'data:no space',
      'data',
      'data:  two: colons',
      'retry: 5',
      'unknown',
      '',
      'id: 3',
      '',
      'event: late',
      'data: x',
      '',
      'data: the end is missing',
    ];
    const messages = [
      { id: '1', type: 'delta', data: '"größer 🦄"' },
      { id: '2', type: 'message', data: 'no space\n\n two: colons' },
      { id: '3', type: 'late', data: 'x' },
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('\n', '\r\n', '\r'), { minLength: text.length, maxLength: text.length }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (ends, sizes) => {
          const bytes = new TextEncoder().encode(text.map((line, at) => line + endAfter(text, ends, at)).join(''));
          const parser = new EventStreamParser();
          const parsed: EventStreamMessage[] = [];
          for (let from = 0, at = 0; from < bytes.length; at += 1) {
            const to = from + sizes[at % sizes.length];
            parsed.push(...parser.push(bytes.subarray(from, to)));
            from = to;
          }
          expect(parsed).toEqual(messages);
        },
      ),
    );
  });
});

/** A carriage return before an empty line that ends with a line feed would be one line end. */
function endAfter(lines: readonly string[], ends: readonly string[], at: number): string {
  return ends[at] === '\r' && lines[at + 1] === '' && ends[at + 1] === '\n' ? '\n' : ends[at];
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
