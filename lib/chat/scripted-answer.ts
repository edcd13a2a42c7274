import { mintId } from '../common/ids.js';

/** A tool call of a scripted model. */
export interface ScriptedToolCall {
  /** The name of the tool. */
  readonly name: string;
  /** The arguments that the model passes to the tool. Default: `{}`. */
  readonly input?: object;
  /** The id of the tool call. Default: a new id in each call of the model. */
  readonly id?: string;
}

/** An answer of a scripted model: reasoning, text and tool calls, in this order. */
export interface ScriptedModelAnswer {
  /** Streamed word by word before the text. */
  readonly reasoning?: string;
  /** A string is streamed word by word. An iterable yields the deltas. */
  readonly text?: string | AsyncIterable<string>;
  /** Parallel tool calls. */
  readonly calls?: readonly ScriptedToolCall[];
  /** Thrown in place of the end of the answer, after its parts. Default: none. */
  readonly error?: Error;
  /** Milliseconds after each part. Default: none. */
  readonly delayMs?: number;
  /** The usage that the model reports. Default: 10 input tokens and 2 output tokens. */
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
  /** Why the answer ends. Default: `tool-calls` for an answer with calls, otherwise `stop`. */
  readonly finishReason?: ScriptedFinishReason;
}

/** @inline */
type ScriptedFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';

interface ToolCallPart {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: string;
}

/** A part of an answer of `doGenerate`. @inline */
export type ScriptedContent = { type: 'text' | 'reasoning'; text: string } | ToolCallPart;

/** A part of a streamed answer. @inline */
export type ScriptedPart =
  | { type: 'stream-start'; warnings: [] }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  | ToolCallPart
  | ({ type: 'finish' } & Finish);

interface Finish {
  finishReason: { unified: ScriptedFinishReason; raw: string | undefined };
  usage: {
    inputTokens: {
      total: number;
      noCache: number | undefined;
      cacheRead: number | undefined;
      cacheWrite: number | undefined;
    };
    outputTokens: { total: number; text: number | undefined; reasoning: number | undefined };
  };
}

/** Yields the parts of an answer in the format of the AI SDK. @throws `answer.error` */
export async function* partsOf(answer: ScriptedModelAnswer): AsyncGenerator<ScriptedPart, void> {
  const { reasoning, text, calls = [] } = answer;
  yield { type: 'stream-start', warnings: [] };
  if (reasoning !== undefined) yield* blockOf('reasoning', wordsOf(reasoning));
  if (text !== undefined) yield* blockOf('text', typeof text === 'string' ? wordsOf(text) : text);
  for (const { name, input = {}, id = `call-${mintId()}` } of calls) {
    const json = JSON.stringify(input);
    yield { type: 'tool-input-start', id, toolName: name };
    yield { type: 'tool-input-delta', id, delta: json };
    yield { type: 'tool-input-end', id };
    yield { type: 'tool-call', toolCallId: id, toolName: name, input: json };
  }
  if (answer.error !== undefined) throw answer.error;
  yield { type: 'finish', ...toFinish(answer) };
}

/** Returns how an answer ends. */
export function toFinish({ calls = [], finishReason, usage }: ScriptedModelAnswer): Finish {
  const unified = finishReason ?? (calls.length > 0 ? 'tool-calls' : 'stop');
  const { inputTokens = 10, outputTokens = 2 } = usage ?? {};
  return {
    finishReason: { unified, raw: unified },
    usage: {
      inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
    },
  };
}

async function* blockOf(
  kind: 'text' | 'reasoning',
  deltas: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<ScriptedPart, void> {
  const id = `${kind}-${mintId()}`;
  yield { type: `${kind}-start`, id };
  for await (const delta of deltas) yield { type: `${kind}-delta`, id, delta };
  yield { type: `${kind}-end`, id };
}

/** Returns the words with the white space that follows them. */
function wordsOf(text: string): readonly string[] {
  return text.split(/(?<=\s)(?=\S)/);
}
