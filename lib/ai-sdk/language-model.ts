import { InvalidInputError } from '../common/sessions.error.js';
import { isFields, kindOf } from '../common/json.js';
import { aiSdkMessages } from './ai-sdk.messages.js';

/**
 * A part of a model's answer. `type` decides which fields it has; these are the ones that this package reads.
 * @inline
 */
export interface ModelOutputPart {
  readonly type: string;
  readonly delta?: unknown;
  readonly providerExecuted?: unknown;
  readonly finishReason?: unknown;
  readonly usage?: unknown;
  readonly error?: unknown;
}

/** The answer of `doGenerate`. @inline */
export interface ModelResult {
  readonly content: readonly ModelOutputPart[];
  readonly usage?: unknown;
  readonly request?: unknown;
  readonly response?: { readonly headers?: unknown; readonly body?: unknown };
}

/** The answer of `doStream`. @inline */
export interface ModelStream {
  readonly stream: ReadableStream<ModelOutputPart>;
}

/**
 * A language model of the AI SDK: the interface that its specification versions 2, 3 and 4 share. `LanguageModelV2`,
 * `LanguageModelV3` and `LanguageModelV4` of `@ai-sdk/provider` are assignable to it.
 */
export interface AnyLanguageModel {
  readonly specificationVersion: 'v2' | 'v3' | 'v4';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  /** Asks the provider for an answer. The SDK calls it. */
  doGenerate(options: never): PromiseLike<ModelResult>;
  /** Asks the provider for an answer in parts. The SDK calls it. */
  doStream(options: never): PromiseLike<ModelStream>;
}

/** A message of a prompt. The content of a message with the role `tool` is a list of results. */
export interface PromptMessage {
  readonly role: string;
  readonly content: string | readonly { readonly toolCallId?: string }[];
}

/** The options of a call that this package reads. */
export interface ModelCallOptions {
  readonly prompt: readonly PromptMessage[];
  readonly tools?: readonly object[];
  readonly toolChoice?: unknown;
  readonly responseFormat?: unknown;
  readonly abortSignal?: AbortSignal;
  /** Marks a call whose answer is stored, for the models inside of the one that stores it. */
  readonly storedBy?: symbol;
}

/** A model whose methods accept the options of every specification version. */
export interface CallableModel extends Omit<AnyLanguageModel, 'doGenerate' | 'doStream'> {
  doGenerate(options: ModelCallOptions): PromiseLike<ModelResult>;
  doStream(options: ModelCallOptions): PromiseLike<ModelStream>;
}

const VERSIONS: readonly unknown[] = ['v2', 'v3', 'v4'];

/** @throws InvalidInputError if the value is not a language model, also for a string with a model id */
export function assertLanguageModel(model: unknown): asserts model is CallableModel {
  const { specificationVersion: version, doGenerate, doStream } = Object(model) as Record<string, unknown>;
  if (VERSIONS.includes(version) && typeof doGenerate === 'function' && typeof doStream === 'function') return;
  throw new InvalidInputError(
    'model',
    typeof model === 'string' ? aiSdkMessages.modelIdGiven(model) : aiSdkMessages.notAModel(describe(model, version)),
  );
}

function describe(model: unknown, version: unknown): string {
  return isFields(model) && version !== undefined
    ? `${kindOf(model)} with \`specificationVersion\` ${JSON.stringify(version)}`
    : kindOf(model);
}
