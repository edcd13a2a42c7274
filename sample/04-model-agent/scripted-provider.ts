import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ChatRequest, type ChatUsage, type ScriptedAnswer, scriptedAnswer } from './scripted-answers.js';

/** Lets the client read the last word before the connection breaks. */
const HANG_UP_MS = 50;

/** A request, and its result. */
export interface Asked {
  readonly request: ChatRequest;
  outcome: 'open' | 'answered' | 'cut' | 'left';
  /** The reported token counts; set when the answer was sent completely. */
  usage?: ChatUsage;
}

/**
 * A local model provider, so that the sample needs no account: chat completions over HTTP compatible with OpenAI's, with and without
 * streaming, with tools and structured output. Its answers are scripted.
 */
export class ScriptedProvider {
  /** All requests, in order. */
  readonly asked: Asked[] = [];
  /** Milliseconds between two words. */
  pauseMs = 0;
  private cuts = 0;

  private constructor(private readonly server: Server) {}

  static async start(): Promise<ScriptedProvider> {
    const server = createServer();
    const provider = new ScriptedProvider(server);
    server.on('request', (request, response) => {
      provider.complete(request, response).catch(() => response.destroy());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return provider;
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  /** Breaks the next answer without tool calls off in the middle. */
  cutNext(): void {
    this.cuts += 1;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async complete(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = (await json(incoming)) as ChatRequest;
    const asked: Asked = { request, outcome: 'open' };
    this.asked.push(asked);
    response.once('close', () => {
      if (asked.outcome === 'open') asked.outcome = response.writableFinished ? 'answered' : 'left';
    });
    const answer = scriptedAnswer(request);
    const usage = usageOf(request, answer);
    if (!request.stream) {
      asked.usage = usage;
      const message = { role: 'assistant', content: answer.text ?? null };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...head(request), choices, usage }));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    const words = (answer.text ?? '').split(/(?<= )/);
    const cutAt = !answer.calls && this.cuts > 0 ? Math.ceil(words.length / 2) : null;
    if (cutAt !== null) this.cuts -= 1;
    for (const [at, content] of words.entries()) {
      if (at === cutAt) {
        asked.outcome = 'cut';
        // Clients drop data that arrives together with the end.
        await delay(HANG_UP_MS);
        response.destroy();
        return;
      }
      send(response, request, { content });
      await delay(this.pauseMs);
      if (response.destroyed) return;
    }
    for (const [index, { name, args }] of (answer.calls ?? []).entries()) {
      const call = { index, id: `call_${randomUUID()}`, type: 'function', function: { name, arguments: '' } };
      send(response, request, { tool_calls: [call] });
      send(response, request, { tool_calls: [{ index, function: { arguments: JSON.stringify(args) } }] });
    }
    send(response, request, {}, answer.calls ? 'tool_calls' : 'stop');
    asked.usage = usage;
    write(response, { ...head(request), choices: [], usage });
    response.end('data: [DONE]\n\n');
  }
}

function send(response: ServerResponse, request: ChatRequest, delta: object, finish: string | null = null): void {
  write(response, { ...head(request), choices: [{ index: 0, delta, finish_reason: finish }] });
}

function write(response: ServerResponse, chunk: object): void {
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

function head({ model, stream }: ChatRequest): object {
  return { id: 'chatcmpl-1', object: stream ? 'chat.completion.chunk' : 'chat.completion', created: 0, model };
}

/** Counts a word as a token. */
function usageOf({ messages }: ChatRequest, { text = '', calls = [] }: ScriptedAnswer): ChatUsage {
  const prompt = count(messages.map(({ content }) => content ?? '').join(' '));
  const completion = count(text) + calls.length;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function count(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
