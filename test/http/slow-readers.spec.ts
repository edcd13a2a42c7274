import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection, type Socket } from 'node:net';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  type MessageEvent,
  Param,
  Res,
  Sse,
  UseGuards,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import { type Observable, tap } from 'rxjs';
import {
  defineOrchestrator,
  type EventResponse,
  memoryAdapter,
  reply,
  SessionsModule,
  SessionStore,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { clientApp, doors } from './client-app.js';
import { type HttpApp, PLATFORMS } from './http-app.js';
import { headerPrincipal } from './state-app.js';

jest.setTimeout(60_000);

const MEBIBYTE = 1_048_576;
const EVENTS = 1200;
const EVENT_LENGTH = 16_000;
/** Disables Nest's limit. Versions 11.0.0 to 11.2.7 have none. */
const UNLIMITED = { maxPendingDataLength: 0 };

/** The server's end of the connection that is tested. */
let connection: Socket | null = null;

/** Records the connection. */
class ConnectionGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ raw?: { socket: Socket }; socket: Socket }>();
    ({ socket: connection } = request.raw ?? request);
    return true;
  }
}

@Controller('own')
@UseGuards(ConnectionGuard)
class OwnController {
  constructor(private readonly turns: TurnService) {}

  @Sse(':id/with', UNLIMITED)
  withResponse(
    @Param('id') id: string,
    @Res({ passthrough: true }) response: EventResponse,
  ): Promise<Observable<MessageEvent>> {
    return this.turns.events(id, { response });
  }

  @Sse(':id/without', UNLIMITED)
  without(@Param('id') id: string): Promise<Observable<MessageEvent>> {
    return this.turns.events(id);
  }
}

const talker = defineOrchestrator({
  name: 'talker',
  intents: {
    answer: async (turn: TurnContext) => {
      for (let n = 0; n < EVENTS; n += 1) await turn.emit({ type: 'delta', data: 'x'.repeat(EVENT_LENGTH) });
      return reply('done');
    },
  },
});

const chatter = defineOrchestrator({
  name: 'chatter',
  intents: {
    answer: async (turn: TurnContext) => {
      const data = { type: 'text-delta', id: '1', delta: 'x'.repeat(EVENT_LENGTH) };
      for (let n = 0; n < EVENTS; n += 1) await turn.emit({ type: 'ui', data });
      return reply('done');
    },
  },
});

describe.each(PLATFORMS)('clients that do not read on $name', ({ start }) => {
  let app: HttpApp;
  let turns: TurnService;
  let client: Socket;
  let sent: number;
  let peak: number;

  beforeEach(async () => {
    app = await start({
      imports: [
        SessionsModule.forRoot({
          adapter: memoryAdapter(),
          sweep: false,
          principal: headerPrincipal,
          turns: { events: { maxBytes: 2 * EVENTS * EVENT_LENGTH } },
          controllers: {
            turns: { guards: [ConnectionGuard], orchestrators: [talker] },
            chat: { guards: [ConnectionGuard], orchestrators: [chatter] },
          },
        }),
        SessionsModule.forFeature([talker, chatter]),
      ],
      controllers: [OwnController],
    });
    await app.listen(0, '127.0.0.1');
    turns = app.get(TurnService);
    observe();
  });

  afterEach(async () => {
    client.destroy();
    jest.restoreAllMocks();
    await app.close();
  });

  it.each([
    ['the controller', (id: string) => `/turns/${id}/events`],
    ['a handler that passes the response', (id: string) => `/own/${id}/with`],
    ['a handler that does not pass the response', (id: string) => `/own/${id}/without`],
  ])('FIX-50 buffers at most 1 MiB for a client of %s, and sends the rest when it reads', async (_, path) => {
    const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
    const { id } = await turns.submit('talker', 'go', { sessionId });
    client = createConnection({ port: Number(new URL(await app.getUrl()).port), host: '127.0.0.1' });
    client.pause();
    client.write(`GET ${path(id)} HTTP/1.1\r\nHost: localhost\r\nx-user-id: ann\r\nx-session-id: ${sessionId}\r\n\r\n`);
    await turns.result(id);
    // Wait until the connection is full and no more is sent.
    await eventually(async () => {
      const before = sent;
      await delay(300);
      return sent > 0 && sent === before;
    });
    expect(sent).toBeLessThan(EVENTS * EVENT_LENGTH);

    const chunks: string[] = [];
    client.setEncoding('latin1').on('data', (chunk: string) => chunks.push(chunk));
    client.resume();
    await eventually(() => chunks.slice(-2).join('').endsWith('\r\n0\r\n\r\n'), { limitMs: 20_000 });
    const offsets = [...chunks.join('').matchAll(/\nid: (\d+)\n/g)].map(([, offset]) => Number(offset));
    expect(offsets).toEqual(Array.from({ length: EVENTS + 1 }, (__, at) => at + 1));
    expect(peak).toBeLessThan(MEBIBYTE);
  });

  it.each(['the controller', 'a handler that passes the response', 'a chat'])(
    'TRN-14 does not keep the process from stopping for a client of %s',
    async (route) => {
      const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
      const isChat = route === 'a chat';
      const { id } = await turns.submit(isChat ? 'chatter' : 'talker', 'go', { sessionId });
      await turns.result(id);
      const parts = [{ type: 'text', text: 'go' }];
      const body = isChat ? JSON.stringify({ messages: [{ id: 'm', role: 'user', parts }] }) : '';
      const path = route === 'the controller' ? `/turns/${id}/events` : `/own/${id}/with`;
      client = createConnection({ port: Number(new URL(await app.getUrl()).port), host: '127.0.0.1' });
      client.on('error', () => undefined);
      client.pause();
      client.write(
        `${isChat ? 'POST /chat/one' : `GET ${path}`} HTTP/1.1\r\nHost: localhost\r\nx-user-id: ann\r\n` +
          `x-session-id: ${sessionId}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      await eventually(async () => {
        const { bytesWritten = 0 } = connection ?? {};
        await delay(300);
        return connection?.writableNeedDrain === true && connection.bytesWritten === bytesWritten;
      });
      await app.close();
      expect(connection?.destroyed).toBe(true);
    },
  );

  /** Measures the data buffered outside the socket whenever an event is sent. */
  function observe(): void {
    connection = null;
    sent = 0;
    peak = 0;
    const events = turns.events.bind(turns);
    jest.spyOn(turns, 'events').mockImplementation(async (...args) =>
      (await events(...args)).pipe(
        tap(({ data = '' }) => {
          sent += data.length;
          const { bytesWritten = 0, writableLength = 0 } = connection ?? {};
          peak = Math.max(peak, sent - (bytesWritten - writableLength));
        }),
      ),
    );
  }
});

describe.each(PLATFORMS)('streams of a principal on $name', (platform) => {
  it('FIX-50 counts those that a client requests on one connection without reading', async () => {
    const desk = await clientApp({ platform });
    const door = gate();
    doors.set('count slowly', door);
    try {
      await desk.app.listen(0, '127.0.0.1');
      const { hostname, port } = new URL(await desk.app.getUrl());
      const { id: sessionId } = await desk.session({ userId: 'ann' });
      const { id } = await desk.turns.submit('desk', 'count slowly', { sessionId });
      const headers = { 'x-user-id': 'ann', 'x-session-id': sessionId };
      const lines = Object.entries({ ...headers, host: hostname }).map(([name, value]) => `${name}: ${value}\r\n`);
      const connection = createConnection({ host: hostname, port: Number(port) });
      connection.on('error', () => undefined);
      for (let n = 0; n < 16; n += 1) connection.write(`GET /turns/${id}/events HTTP/1.1\r\n${lines.join('')}\r\n`);

      const another = async (): Promise<number> => {
        const leaving = new AbortController();
        const url = `http://${hostname}:${port}/turns/${id}/events`;
        const { status } = await fetch(url, { headers, signal: leaving.signal });
        leaving.abort();
        return status;
      };
      await eventually(async () => (await another()) === 429);
      connection.destroy();
      await eventually(async () => (await another()) === 200);
    } finally {
      door.open();
      doors.delete('count slowly');
      await desk.app.close();
    }
  });

  it('FIX-50 opens at most 16 streams for a principal, and another when one ends', async () => {
    const desk = await clientApp({ platform });
    const door = gate();
    doors.set('count slowly', door);
    try {
      await desk.app.listen(0, '127.0.0.1');
      const url = await desk.app.getUrl();
      const open = async (
        userId: string,
      ): Promise<{ status: number; body: () => Promise<unknown>; leave: () => void }> => {
        const { id: sessionId } = await desk.session({ userId });
        const { id } = await desk.turns.submit('desk', 'count slowly', { sessionId });
        const leaving = new AbortController();
        const headers = { 'x-user-id': userId, 'x-session-id': sessionId };
        const response = await fetch(`${url}/turns/${id}/events`, { headers, signal: leaving.signal });
        return { status: response.status, body: () => response.json(), leave: () => leaving.abort() };
      };

      const streams = await Promise.all(Array.from({ length: 20 }, () => open('ann')));
      const [refused, ...others] = streams.filter(({ status }) => status !== 200);
      expect(others).toHaveLength(3);
      expect(await refused.body()).toMatchObject({ statusCode: 429, code: 'TOO_MANY_STREAMS' });
      const bob = await open('bob');
      expect(bob.status).toBe(200);

      const [first, ...rest] = streams.filter(({ status }) => status === 200);
      first.leave();
      await eventually(async () => {
        const again = await open('ann');
        rest.push(again);
        return again.status === 200;
      });
      for (const stream of [bob, ...rest]) stream.leave();
    } finally {
      door.open();
      doors.delete('count slowly');
      await desk.app.close();
    }
  });
});
