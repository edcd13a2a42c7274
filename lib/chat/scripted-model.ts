import { setTimeout as delay } from 'node:timers/promises';
import { types } from 'node:util';
import { InvalidInputError } from '../common/sessions.error.js';
import { modelScriptOver } from './chat.errors.js';
import {
  type ScriptedContent,
  type ScriptedPart,
  partsOf,
  type ScriptedModelAnswer,
  toFinish,
  toScriptedAnswer,
} from './scripted-answer.js';

/** A message of a prompt, as the AI SDK gives it to models. @inline */
export interface ScriptedPromptMessage {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

/** The options of a call that the model reads. @inline */
interface ScriptedCallOptions {
  readonly prompt: readonly ScriptedPromptMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

/** A call of a scripted model. */
export interface ModelCall {
  /** The messages that the model received. */
  readonly prompt: readonly ScriptedPromptMessage[];
  /** Text of the user's last message. */
  readonly said: string;
  /** The number of answers of the model since the user's last message: 0 for the first call of an answer. */
  readonly step: number;
  /** The number of earlier calls of the model. */
  readonly calls: number;
  /** The number of earlier calls with the same prompt, except for the ids of tool calls. */
  readonly repeats: number;
  /** The options of the SDK for `doStream` or `doGenerate`, with tools and settings. */
  readonly options: object;
}

/** A call with what the model has answered. */
export interface AnsweredCall extends ModelCall {
  /** Text of the answer so far. */
  readonly text: string;
  /** Reasoning of the answer so far. */
  readonly reasoning: string;
}

/** The answer to one call. A string is its text. An error is thrown before the answer begins. */
export type ModelAnswer = string | ScriptedModelAnswer | Error;

/** Decides the answer to each call: a function, or a list with the answers in their order. */
export type ModelScript = ((call: ModelCall) => ModelAnswer | Promise<ModelAnswer>) | readonly ModelAnswer[];

/** A language model of the AI SDK that answers from a script. Versions 6 and 7 of `ai` accept it. */
export interface ScriptedModel {
  /** The version of the SDK's model interface. */
  readonly specificationVersion: 'v3';
  /** `scripted`. */
  readonly provider: string;
  /** `scripted`. */
  readonly modelId: string;
  /** None: the SDK downloads files for the model. */
  readonly supportedUrls: Record<string, RegExp[]>;
  /** The calls so far, in order. */
  readonly calls: readonly AnsweredCall[];
  /** @hidden The SDK calls it. */
  doGenerate(options: ScriptedCallOptions): Promise<ScriptedResult>;
  /** @hidden The SDK calls it. */
  doStream(options: ScriptedCallOptions): Promise<{ stream: ReadableStream<ScriptedPart> }>;
}

/** The answer of `doGenerate`. @inline */
type ScriptedResult = { content: ScriptedContent[]; warnings: [] } & ReturnType<typeof toFinish>;

type Recorded = { -readonly [Key in keyof AnsweredCall]: AnsweredCall[Key] };

/**
 * Creates a language model of the AI SDK that answers from a script, for tests and for development without a provider:
 *
 * ```ts
 * const model = scriptedModel(({ said, step }) =>
 *   step === 0 ? { calls: [{ name: 'findOrder', input: { orderId: '7' } }] } : 'Order 7 is shipped.',
 * );
 * ```
 * It streams an answer word by word, and gives each tool call another id, as models do. `model.calls` has the prompts.
 * @param script a function; or a list of answers, of which each call gets the next one. A call
 * that is repeated after a crash also gets the next one. Further calls throw HandlerError (`MODEL_SCRIPT_OVER`)
 * @throws InvalidInputError also for an answer in a list. An invalid answer of a function fails the model's call
 */
export function scriptedModel(script: ModelScript): ScriptedModel {
  if (typeof script !== 'function' && !Array.isArray(script)) {
    throw new InvalidInputError('script', 'must be a function or an array of answers.');
  }
  if (Array.isArray(script)) {
    script.forEach((answer, index) => isError(answer) || toScriptedAnswer(answer, `script[${index}]`));
  }
  const calls: Recorded[] = [];
  const prompts = new Map<string, number>();

  async function answerTo(options: ScriptedCallOptions): Promise<{ call: Recorded; answer: ScriptedModelAnswer }> {
    const { prompt } = options;
    const key = keyOf(prompt);
    const repeats = prompts.get(key) ?? 0;
    prompts.set(key, repeats + 1);
    const call = { ...placeOf(prompt), prompt, calls: calls.length, repeats, options, text: '', reasoning: '' };
    calls.push(call);
    const answer = typeof script === 'function' ? await script(call) : script[call.calls];
    if (answer === undefined) throw modelScriptOver(Array.isArray(script) ? script.length : null, call.said);
    if (isError(answer)) throw answer;
    return {
      call,
      answer: toScriptedAnswer(answer, typeof script === 'function' ? 'answer' : `script[${call.calls}]`),
    };
  }

  return {
    specificationVersion: 'v3',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    calls,
    doStream: async (options) => {
      const { call, answer } = await answerTo(options);
      return { stream: ReadableStream.from<ScriptedPart>(streamed(call, answer, options.abortSignal)) };
    },
    doGenerate: async (options) => {
      const { call, answer } = await answerTo(options);
      const toolCalls: ScriptedContent[] = [];
      for await (const part of streamed(call, answer, options.abortSignal)) {
        if (part.type === 'tool-call') toolCalls.push(part);
      }
      const { reasoning, text } = call;
      return {
        content: [
          ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
          ...(text === '' ? [] : [{ type: 'text' as const, text }]),
          ...toolCalls,
        ],
        ...toFinish(answer),
        warnings: [],
      };
    },
  };
}

/** Yields the parts of an answer, and records its text and reasoning. */
async function* streamed(
  call: Recorded,
  answer: ScriptedModelAnswer,
  signal: AbortSignal | undefined,
): AsyncGenerator<ScriptedPart, void> {
  for await (const part of partsOf(answer)) {
    signal?.throwIfAborted();
    if (part.type === 'text-delta') call.text += part.delta;
    if (part.type === 'reasoning-delta') call.reasoning += part.delta;
    yield part;
    if (answer.delayMs !== undefined) await delay(answer.delayMs, undefined, signal ? { signal } : {});
  }
}

/** Errors of the runtime belong to another realm than a test, so instanceof does not match them. */
function isError(answer: unknown): answer is Error {
  return answer instanceof Error || types.isNativeError(answer);
}

function placeOf(prompt: ScriptedCallOptions['prompt']): Pick<ModelCall, 'said' | 'step'> {
  const last = prompt.findLastIndex(({ role }) => role === 'user');
  const content = prompt[last]?.content ?? '';
  const texts = typeof content === 'string' ? [content] : content.flatMap(({ text }) => text ?? []);
  const step = prompt.slice(last + 1).filter(({ role }) => role === 'assistant').length;
  return { said: texts.join('\n'), step };
}

function keyOf(prompt: ScriptedCallOptions['prompt']): string {
  return JSON.stringify(prompt, (key, value: unknown) => (key === 'toolCallId' || key === 'approvalId' ? '' : value));
}
