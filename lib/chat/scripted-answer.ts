import { Allow } from 'class-validator';
import { checkInput, Must, Optional } from '../common/check-input.js';
import { mintId } from '../common/ids.js';

const MustBeText = (): PropertyDecorator => Must((value) => typeof value === 'string', 'must be a string.');

/** A tool call of a scripted model. */
export class ScriptedToolCall {
  /** The name of the tool. */
  @MustBeText()
  readonly name!: string;
  /** The arguments that the model passes to the tool. Default: `{}`. */
  @Optional()
  @Must((value) => typeof value === 'object' && value !== null, 'must be an object.')
  readonly input?: object;
  /** The id of the tool call. Default: a new id in each call of the model. */
  @Optional()
  @MustBeText()
  readonly id?: string;
}

/** An answer of a scripted model: reasoning, text and tool calls, in this order. */
export class ScriptedModelAnswer {
  /** Streamed word by word before the text. */
  @Optional()
  @MustBeText()
  readonly reasoning?: string;
  /** A string is streamed word by word. An iterable yields the deltas. */
  @Optional()
  @Must((value) => typeof value === 'string' || isIterable(value), 'must be a string or an iterable of strings.')
  readonly text?: string | AsyncIterable<string>;
  /** Parallel tool calls. */
  @Optional()
  @Must(Array.isArray, 'must be an array of calls, { name, input }.')
  readonly calls?: readonly ScriptedToolCall[];
  /** Thrown in place of the end of the answer, after its parts. Default: none. */
  @Allow()
  readonly error?: Error;
  /** Milliseconds after each part. Default: none. */
  @Allow()
  readonly delayMs?: number;
  /** The usage that the model reports. Default: 10 input tokens and 2 output tokens. */
  @Allow()
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
  /** Why the answer ends. Default: `tool-calls` for an answer with calls, otherwise `stop`. */
  @Allow()
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

/** Returns an answer of a script. @throws InvalidInputError for an unknown key, which would give an empty answer */
export function toScriptedAnswer(answer: unknown, path: string): ScriptedModelAnswer {
  if (typeof answer === 'string') return { text: answer };
  const checked = checkInput(ScriptedModelAnswer, answer, path);
  checked.calls?.forEach((call, index) => checkInput(ScriptedToolCall, call, `${path}.calls[${index}]`));
  return checked;
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

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
}

/** Returns the words with the white space that follows them. */
function wordsOf(text: string): readonly string[] {
  return text.split(/(?<=\s)(?=\S)/);
}
