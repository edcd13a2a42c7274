import { type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type ExecutionContext, type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule } from '@nestjs/graphql';
import { ClientProxyFactory, Transport } from '@nestjs/microservices';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { type Principal } from 'nestjs-agent-sessions';
import { firstValueFrom } from 'rxjs';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import { ControllerHandlers, GatewayHandlers, PairGuard, ResolverHandlers, SCHEMA, userOf } from './handlers.js';

/** A message to a handler in any transport. */
export interface Call {
  readonly user?: string;
  /** Sent at the transport's default source. */
  readonly sessionId?: string;
  readonly turnId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  /** WebSocket: replaces all data. */
  readonly payload?: unknown;
  /** WebSocket: headers of the handshake. Calls with equal headers share a socket. */
  readonly handshake?: Readonly<Record<string, string>>;
}

/** The reply to the client: the handler's result, or an error. */
export type Reply = { readonly ok: unknown } | { readonly error: Readonly<Record<string, unknown>> };

export interface Running {
  readonly app: INestApplication;
  readonly ask: (handler: string, call?: Call) => Promise<Reply>;
  readonly close: () => Promise<void>;
}

export interface TestedTransport {
  readonly name: string;
  /** The default source of the session id. */
  readonly sessionAt: string;
  /** The source of the user in the default resolver, as shown in the log. */
  readonly userAt: string;
  /** A custom resolver if the default one finds no user in this transport. */
  readonly principal?: (context: ExecutionContext) => Principal | null;
  readonly start: (metadata: ModuleMetadata) => Promise<Running>;
}

export const TRANSPORTS: readonly TestedTransport[] = [
  {
    name: 'HTTP',
    sessionAt: 'header:x-session-id',
    userAt: 'No user at request.user.',
    start: async (metadata) => {
      const app = await application(metadata, { controllers: [ControllerHandlers] });
      const url = await listening(app);
      const ask = async (handler: string, { turnId, data, ...call }: Call = {}): Promise<Reply> => {
        const path = turnId === undefined ? handler : `${handler}/${turnId}`;
        const response = await post(`${url}/${path}`, call, data);
        const body = (await response.json()) as Record<string, unknown>;
        if (response.ok) return { ok: body };
        expect(response.status).toBe(body.statusCode);
        return { error: body };
      };
      return { app, ask, close: () => app.close() };
    },
  },
  {
    name: 'GraphQL',
    sessionAt: 'header:x-session-id',
    userAt: 'No user at context.req.user or context.user.',
    start: async (metadata) => {
      const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, typeDefs: SCHEMA });
      const app = await application(metadata, { imports: [graphql], providers: [ResolverHandlers] });
      const url = await listening(app);
      const ask = async (handler: string, { turnId, data, ...call }: Call = {}): Promise<Reply> => {
        const args = Object.entries({ ...data, ...(turnId === undefined ? {} : { turnId }) });
        const list = args.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ');
        const query = `{ ${handler}${list === '' ? '' : `(${list})`} }`;
        const result = (await (await post(`${url}/graphql`, call, { query })).json()) as GraphQLResult;
        const [error] = result.errors ?? [];
        return error ? { error: { message: error.message, ...error.extensions } } : { ok: result.data?.[handler] };
      };
      return { app, ask, close: () => app.close() };
    },
  },
  {
    name: 'WebSocket, by Socket.IO',
    sessionAt: 'data:sessionId',
    userAt: 'No user at client.user or client.data.user.',
    start: async (metadata) => {
      const app = await application(metadata, { providers: [GatewayHandlers] });
      app.useWebSocketAdapter(new IoAdapter(app));
      const url = await listening(app);
      const sockets = new Map<string, Socket>();
      const ask = async (handler: string, call: Call = {}): Promise<Reply> => {
        const socket = cached(sockets, call, (headers) => io(url, { extraHeaders: headers, forceNew: true }));
        return new Promise((resolve) => {
          socket.once('exception', (error: Record<string, unknown>) => resolve({ error }));
          socket.emit(
            handler,
            ...('payload' in call && call.payload === undefined ? [] : [messageOf(call)]),
            (ok: unknown) => resolve({ ok }),
          );
        });
      };
      const close = async (): Promise<void> => {
        for (const socket of sockets.values()) socket.close();
        await app.close();
      };
      return { app, ask, close };
    },
  },
  {
    name: 'WebSocket, by ws',
    sessionAt: 'data:sessionId',
    userAt: 'No user at client.user or client.data.user.',
    start: async (metadata) => {
      const app = await application(metadata, { providers: [GatewayHandlers] });
      app.useWebSocketAdapter(new WsAdapter(app));
      const url = await listening(app);
      const sockets = new Map<string, Promise<PlainSocket>>();
      const ask = async (handler: string, call: Call = {}): Promise<Reply> => {
        const socket = await cached(sockets, call, (headers) => PlainSocket.open(url, headers));
        const answer = await socket.ask({ event: handler, data: messageOf(call) });
        return answer.event === 'exception' ? { error: answer.data as Record<string, unknown> } : { ok: answer };
      };
      return { app, ask, close: () => app.close() };
    },
  },
  {
    name: 'microservices, by TCP',
    sessionAt: 'data:sessionId',
    userAt: 'Set the option principal',
    principal: (context) => {
      const { user } = context.switchToRpc().getData<{ user?: string }>();
      return user === undefined ? null : { userId: user };
    },
    start: async (metadata) => {
      const app = await application(metadata, { controllers: [ControllerHandlers] });
      const server = app.connectMicroservice(
        { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } },
        { inheritAppConfig: true },
      );
      await app.init();
      await app.startAllMicroservices();
      const { port } = server.unwrap<{ address(): AddressInfo }>().address();
      const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
      const ask = async (handler: string, call: Call = {}): Promise<Reply> => {
        const data = { ...payloadOf(call), ...(call.user === undefined ? {} : { user: call.user }) };
        return firstValueFrom(client.send<unknown>(handler, data)).then(
          (ok) => ({ ok }),
          (error: Record<string, unknown>) => ({ error }),
        );
      };
      const close = async (): Promise<void> => {
        client.close();
        await app.close();
      };
      return { app, ask, close };
    },
  },
];

interface GraphQLResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

interface PlainMessage {
  readonly event?: string;
  readonly data?: unknown;
}

/** Returns the reply of each message, in the order of arrival. */
export class PlainSocket {
  private readonly waiting: ((message: PlainMessage) => void)[] = [];

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', (text: Buffer) => this.waiting.shift()?.(JSON.parse(text.toString()) as PlainMessage));
  }

  static async open(url: string, headers: Record<string, string>): Promise<PlainSocket> {
    const socket = new WebSocket(url.replace('http', 'ws'), { headers });
    const opened = new PlainSocket(socket);
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return opened;
  }

  ask(message: PlainMessage): Promise<PlainMessage> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.socket.send(JSON.stringify(message));
    });
  }
}

/** Adds authentication for HTTP and GraphQL that trusts a header. */
async function application(metadata: ModuleMetadata, more: ModuleMetadata): Promise<INestApplication> {
  const module = await Test.createTestingModule({
    imports: [...(metadata.imports ?? []), ...(more.imports ?? [])],
    controllers: more.controllers ?? [],
    providers: [PairGuard, ...(metadata.providers ?? []), ...(more.providers ?? [])],
  }).compile();
  const app = module.createNestApplication({ logger: false });
  app.use((request: { headers: Record<string, string>; user?: object }, _: unknown, next: () => void) => {
    const { 'x-user-id': id } = request.headers;
    if (id !== undefined) request.user = userOf(id);
    next();
  });
  return app;
}

async function listening(app: INestApplication): Promise<string> {
  await app.listen(0, '127.0.0.1');
  // On a slow machine, the server must not close connections that the client is about to use.
  (app.getHttpServer() as Server).keepAliveTimeout = 0;
  return app.getUrl();
}

function post(url: string, { user, sessionId }: Call, body: unknown = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...userHeader(user) };
  return fetch(url, {
    method: 'POST',
    headers: sessionId === undefined ? headers : { ...headers, 'x-session-id': sessionId },
    body: JSON.stringify(body),
  });
}

function messageOf(call: Call): unknown {
  return 'payload' in call ? call.payload : payloadOf(call);
}

function payloadOf({ sessionId, turnId, data }: Call): Record<string, unknown> {
  return { ...data, ...(sessionId === undefined ? {} : { sessionId }), ...(turnId === undefined ? {} : { turnId }) };
}

function userHeader(user: string | undefined): Record<string, string> {
  return user === undefined ? {} : { 'x-user-id': user };
}

function cached<T>(known: Map<string, T>, { user, handshake }: Call, open: (headers: Record<string, string>) => T): T {
  const headers = { ...userHeader(user), ...handshake };
  const key = JSON.stringify(headers);
  const socket = known.get(key) ?? open(headers);
  known.set(key, socket);
  return socket;
}
