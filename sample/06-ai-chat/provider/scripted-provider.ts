import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ChatRequest, type ChatUsage } from './chat-completions.js';
import { type Completion, completionOf } from './completion.js';
import { type Script, type ScriptedAnswer, type ScriptedFailure, type ScriptedFault } from './script.js';

/** Lets the client read the last token before the connection breaks. */
const BREAK_MS = 50;

export interface ProviderOptions {
  /** Default: a free port. */
  readonly port?: number;
  /** Milliseconds between two tokens. Default 0. */
  readonly pauseMs?: number;
}

/** A request, and its result. */
export interface Asked {
  readonly request: ChatRequest;
  /** `left`: the client closed the connection. `faulty`: the answer had a fault. `refused`: it got an error response. */
  outcome: 'open' | 'answered' | 'refused' | 'faulty' | 'left';
  /** The number of tokens that were streamed. */
  tokens: number;
  /** The reported token counts; set when the answer was sent completely. */
  usage?: ChatUsage;
}

/**
 * A local model provider: chat completions over HTTP compatible with OpenAI's, with and without streaming, with
 * reasoning and tools. A script decides its answers, so that the sample and its tests need no account.
 */
export class ScriptedProvider {
  /** All requests, in order. `GET /asked` returns them to other processes. */
  readonly asked: Asked[] = [];
  private readonly seen = new Map<string, number>();

  private constructor(
    private readonly server: Server,
    /** May be replaced between two requests. */
    public script: Script,
    private readonly pauseMs: number,
  ) {}

  static async start(script: Script, { port = 0, pauseMs = 0 }: ProviderOptions = {}): Promise<ScriptedProvider> {
    const server = createServer();
    const provider = new ScriptedProvider(server, script, pauseMs);
    server.on('request', (request, response) => {
      provider.respond(request, response).catch((error: unknown) => {
        if (!response.destroyed) console.error(error);
        response.destroy();
      });
    });
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return provider;
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  /** Lets the process end although the provider still runs. */
  unref(): this {
    this.server.unref();
    return this;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${incoming.method} ${incoming.url}`;
    if (route === 'GET /asked') return send(response, 200, this.asked);
    if (route !== 'POST /v1/chat/completions') {
      return send(response, 404, errorBody(`${route} does not exist. Expected: POST /v1/chat/completions.`));
    }
    const request = (await json(incoming)) as ChatRequest;
    const asked: Asked = { request, outcome: 'open', tokens: 0 };
    const scripted = this.script(request, { requests: this.asked.length, repeats: this.countRepeats(request) });
    this.asked.push(asked);
    const left = new AbortController();
    response.once('close', () => {
      if (asked.outcome === 'open') asked.outcome = response.writableFinished ? 'answered' : 'left';
      left.abort();
    });
    if ('status' in scripted) return refuse(response, scripted, asked);
    const completion = completionOf(request, scripted);
    if (request.stream) await this.stream(response, asked, scripted, completion, left.signal);
    else await complete(response, asked, scripted, completion);
  }

  /** The ids of tool calls differ between equal requests. */
  private countRepeats(request: ChatRequest): number {
    const key = JSON.stringify(request, (name, value: unknown) => (/^(tool_call_)?id$/.test(name) ? undefined : value));
    const repeats = this.seen.get(key) ?? 0;
    this.seen.set(key, repeats + 1);
    return repeats;
  }

  private async stream(
    response: ServerResponse,
    asked: Asked,
    { before, fault, pauseMs = this.pauseMs }: ScriptedAnswer,
    { deltas, finishReason, usage }: Completion,
    signal: AbortSignal,
  ): Promise<void> {
    response.setHeader('content-type', 'text/event-stream');
    response.flushHeaders();
    const write = (choices: object[], more?: object): void => writeChunk(response, asked.request, choices, more);
    for (const [index, delta] of deltas.entries()) {
      await before?.(index);
      if (fault && index === (fault.after ?? 0)) break;
      if (index > 0 && pauseMs > 0) await delay(pauseMs, undefined, { signal });
      signal.throwIfAborted();
      write([{ index: 0, delta, finish_reason: null }]);
      asked.tokens += 1;
    }
    if (fault) return fail(response, fault, asked);
    write([{ index: 0, delta: {}, finish_reason: finishReason }]);
    asked.usage = usage;
    if (asked.request.stream_options?.include_usage) write([], { usage });
    response.end('data: [DONE]\n\n');
  }
}

async function complete(
  response: ServerResponse,
  asked: Asked,
  { before, fault }: ScriptedAnswer,
  { message, finishReason, usage }: Completion,
): Promise<void> {
  await before?.(0);
  response.setHeader('content-type', 'application/json');
  if (fault) return fail(response, fault, asked);
  asked.usage = usage;
  const choices = [{ index: 0, message, finish_reason: finishReason }];
  send(response, 200, { ...head(asked.request), choices, usage });
}

async function fail(response: ServerResponse, { kind }: ScriptedFault, asked: Asked): Promise<void> {
  asked.outcome = 'faulty';
  if (kind === 'malformed') {
    response.end(asked.request.stream ? 'data: {"choices":\n\n' : '{"choices":');
  } else if (kind === 'end') {
    response.end();
  } else {
    await delay(BREAK_MS);
    response.destroy();
  }
}

function refuse(response: ServerResponse, failure: ScriptedFailure, asked: Asked): void {
  const { status, message = 'The provider cannot answer.', retryAfterSeconds } = failure;
  asked.outcome = 'refused';
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds);
  send(response, status, errorBody(message));
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function errorBody(message: string): object {
  return { error: { message, type: 'scripted_error', param: null, code: null } };
}

function writeChunk(response: ServerResponse, request: ChatRequest, choices: object[], more: object = {}): void {
  response.write(`data: ${JSON.stringify({ ...head(request), choices, ...more })}\n\n`);
}

function head({ model, stream }: ChatRequest): object {
  return { id: 'chatcmpl-1', object: stream ? 'chat.completion.chunk' : 'chat.completion', created: 0, model };
}
