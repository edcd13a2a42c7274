import { type ChatRequest, type ChatUsage } from './chat-completions.js';

/** Decides the response to each request. */
export type Script = (request: ChatRequest, asked: AskedBefore) => ScriptedAnswer | ScriptedFailure;

export interface AskedBefore {
  /** The number of earlier requests. */
  readonly requests: number;
  /** The number of earlier requests with the same body, except for the ids of tool calls. */
  readonly repeats: number;
}

/** An answer: reasoning, text and tool calls, streamed in this order. */
export interface ScriptedAnswer {
  readonly reasoning?: string;
  readonly text?: string;
  /** Parallel tool calls. */
  readonly calls?: readonly ScriptedCall[];
  /** Default: `tool_calls` for an answer with calls, otherwise `stop`. */
  readonly finish?: 'stop' | 'length' | 'content_filter' | 'tool_calls';
  /** Default: a word counts as a token. */
  readonly usage?: ChatUsage;
  /** Characters of a streamed token. Default: the characters of a word. */
  readonly tokenLength?: number;
  /** Milliseconds between two tokens. Default: the setting of the provider. */
  readonly pauseMs?: number;
  /** Awaited before each token, from 0, and before the fault. Without streaming, only before the response. */
  readonly before?: (token: number) => unknown;
  /** Default: none. */
  readonly fault?: ScriptedFault;
}

export interface ScriptedCall {
  /** Default: a random id, as with real models. */
  readonly id?: string;
  readonly name: string;
  readonly args: object;
}

/** How an answer goes wrong. */
export interface ScriptedFault {
  /** Destroys the connection, ends the response early, or sends a chunk that is not JSON. */
  readonly kind: 'break' | 'end' | 'malformed';
  /** The number of tokens that are sent before it. Default 0. */
  readonly after?: number;
}

/** An error response. */
export interface ScriptedFailure {
  readonly status: number;
  readonly message?: string;
  /** The header `retry-after`. */
  readonly retryAfterSeconds?: number;
}

/** Answers repeated requests differently, as real models do: the second half of the text has other words. */
export function diverging(script: Script): Script {
  return (request, asked) => {
    const answer = script(request, asked);
    if (asked.repeats === 0 || 'status' in answer) return answer;
    const { text, reasoning } = answer;
    return {
      ...answer,
      ...(reasoning === undefined ? {} : { reasoning: rephrase(reasoning, asked.repeats) }),
      ...(text === undefined ? {} : { text: rephrase(text, asked.repeats) }),
    };
  };
}

function rephrase(text: string, repeats: number): string {
  const words = text.split(' ');
  return words.toSpliced(Math.ceil(words.length / 2), 0, `(version ${repeats + 1})`).join(' ');
}
