import { type AddressInfo } from 'node:net';
import {
  type OrchestratorRef,
  type ProcessRole,
  type SessionsModuleOptions,
  SessionsModule,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { type ChatControllerOptions } from 'nestjs-agent-sessions/http';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { type HttpApp, PLATFORMS } from './http-app.js';
import { headerPrincipal, headersOf, OpenGuard, type Who } from './state-app.js';

export interface ChatAppOptions extends SessionsModuleOptions {
  /** Default: `both`. */
  readonly role?: ProcessRole;
  readonly orchestrators: readonly OrchestratorRef[];
  readonly chat?: Partial<ChatControllerOptions>;
  readonly platform?: (typeof PLATFORMS)[number];
  readonly port?: number;
  readonly configure?: (app: HttpApp) => unknown;
}

export interface ChatApp {
  readonly app: HttpApp;
  /** Where the chat is, without a slash at the end. */
  readonly url: string;
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  /** Sends a request, by default as ann. */
  readonly ask: (method: string, path: string, options?: Asked) => Promise<Response>;
  /** Sends JSON and returns the JSON of the response. */
  readonly json: <T>(method: string, path: string, options?: Asked) => Promise<T>;
  readonly close: () => Promise<void>;
}

export interface Asked {
  readonly as?: Who;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

const running = new Set<ChatApp>();

/** Starts an application with the chat controller on a port. It is closed after the test at the latest. */
export async function startChatApp({
  orchestrators,
  chat,
  platform = PLATFORMS[0],
  port = 0,
  configure,
  ...options
}: ChatAppOptions): Promise<ChatApp> {
  const app = await platform.start(
    {
      imports: [
        SessionsModule.forRoot({
          sweep: false,
          principal: headerPrincipal,
          ...options,
          turns: { reconcileMs: 100, shutdownGraceMs: 50, ...options.turns },
          controllers: { chat: { guards: [OpenGuard], orchestrators, ...chat } },
        }),
        SessionsModule.forFeature([...orchestrators]),
      ],
    },
    configure,
  );
  await app.listen(port, '127.0.0.1');
  const { port: bound } = app.getHttpServer().address() as AddressInfo;
  const url = `http://127.0.0.1:${bound}/chat`;
  const ask: ChatApp['ask'] = (method, path, { as = { userId: 'ann' }, body, headers, signal } = {}) =>
    fetch(`${url}${path}`, {
      method,
      headers: {
        ...headersOf(as),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  const chatApp: ChatApp = {
    app,
    url,
    sessions: app.get(SessionStore),
    turns: app.get(TurnService),
    ask,
    json: async (method, path, asked) => (await (await ask(method, path, asked)).json()) as never,
    close: async () => {
      running.delete(chatApp);
      await app.close();
    },
  };
  running.add(chatApp);
  return chatApp;
}

afterEach(async () => {
  await Promise.all([...running].map((app) => app.close()));
});

/** A user's message as a front end sends it. */
export function said(text: string, id = `message-${(messages += 1)}`): AnyUIMessage {
  return { id, role: 'user', parts: [{ type: 'text', text }] };
}
let messages = 0;

/** Reads the chunks of a response until it ends, or until `enough`. Rejects if the connection breaks. */
export async function chunksOf(response: Response, enough?: (chunk: UIChunk) => boolean): Promise<UIChunk[]> {
  const chunks: UIChunk[] = [];
  let text = '';
  for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      const data = event.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
      if (data.length === 0) continue;
      const chunk = JSON.parse(data.join('\n')) as UIChunk;
      chunks.push(chunk);
      if (enough?.(chunk)) {
        await response.body!.cancel().catch(() => undefined);
        return chunks;
      }
    }
  }
  return chunks;
}
