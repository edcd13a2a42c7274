import { checkInput, MustBeName, Optional } from '../common/check-input.js';
import { deferred } from './deferred.js';
import {
  type AnyLanguageModel,
  assertLanguageModel,
  type CallableModel,
  type ModelCallOptions,
  type ModelOutputPart,
  type ModelResult,
  type ModelStream,
} from './language-model.js';
import { ModelCalls, type ModelTurn, type ReportUsage } from './model-calls.js';
import { ModelPrompt } from './model-prompt.js';
import { recordStream } from './recorded-stream.js';

/** Options of {@link durableModel} and `durableCalls`. */
export class DurableModelOptions {
  /**
   * Identifies the loop that uses the model, within its intent or enclosing tool call. It must be the same in every
   * attempt. Required for loops that run in parallel. Default: the calls without a key are numbered in their order.
   */
  @Optional()
  @MustBeName()
  key?: string;
}

/** The part of a model that a durable one has. */
export type DurableModel<Model extends AnyLanguageModel> = Model extends unknown
  ? Pick<Model, keyof AnyLanguageModel>
  : never;

/** The value of `storedBy` in calls whose answer a durable model stores. JSON omits symbols, so no provider receives it. */
const DURABLE_MODEL = Symbol('durable model');

/**
 * Returns a language model for the AI SDK whose calls are stored steps of the turn (AIS-01). A later attempt gets the
 * stored answers and does not ask the provider. Use one for each loop: for each call of `streamText` or `generateText`,
 * and for each agent.
 *
 * It is a shorthand for `wrapLanguageModel({ model, middleware: durableCalls(turn, options) })`. The model keeps its
 * specification version.
 *
 * Streamed text, reasoning, sources and files arrive live. Everything from the first tool call on arrives when the
 * answer is stored, so the ids of tool calls are final (AIS-02). A call that fails is not stored as an answer. A stored
 * answer has no headers, no bodies of request and response, and no `raw` parts.
 *
 * The tokens are added to `turn.usage`, also those of calls that fail or are aborted, if the provider sends them; other
 * calls count in `unknownCalls` (AIS-36). The budget is checked before the provider is asked (AIS-05). The request is
 * aborted with the turn. An error of the provider keeps its `retry-after` as `retryAfterMs`. If the API key is missing or
 * refused (401, 403), the error is `permanent`: the turn is not retried unless the handler catches it.
 *
 * ```ts
 * const { text } = await generateText({ model: durableModel(turn, openai('gpt-5')), prompt: turn.input.text });
 * ```
 *
 * A call throws what the provider throws, and:
 * - AnswerError (`MODEL_PROMPT_MISMATCH`) if the stored answer belongs to another prompt,
 * - HandlerError (`MODEL_KEY_REQUIRED`) if calls with the same key, or without one, run in parallel (AIS-04),
 * - AnswerError (`INCOMPLETE_ANSWER`) if a streamed answer has no end,
 * - TokenBudgetExceededError, TooLargeError if the answer is larger than `turns.maxStepBytes`.
 *
 * @param model a model of specification version 2, 3 or 4, not a model's id
 * @throws InvalidInputError
 */
export function durableModel<Model extends AnyLanguageModel>(
  turn: ModelTurn,
  model: Model,
  options: DurableModelOptions = {},
): DurableModel<Model> {
  assertLanguageModel(model);
  const { key } = checkInput(DurableModelOptions, options, 'options');
  return new DurableLanguageModel(turn, model, new ModelCalls(turn, key)) as unknown as DurableModel<Model>;
}

/**
 * Makes the calls of a model durable. It has what the SDK uses of a model, in any specification version. It does not
 * store calls of another durable model around it, which stores them itself.
 */
export class DurableLanguageModel implements CallableModel {
  constructor(
    private readonly turn: ModelTurn,
    private readonly model: CallableModel,
    private readonly calls: ModelCalls,
  ) {}

  get specificationVersion(): CallableModel['specificationVersion'] {
    return this.model.specificationVersion;
  }

  get provider(): string {
    return this.model.provider;
  }

  get modelId(): string {
    return this.model.modelId;
  }

  get supportedUrls(): CallableModel['supportedUrls'] {
    return this.model.supportedUrls;
  }

  async doGenerate(options: ModelCallOptions): Promise<ModelResult> {
    if (options.storedBy === DURABLE_MODEL) return this.model.doGenerate(options);
    const abortSignal = this.signalWith(options.abortSignal);
    return this.calls.run({
      prompt: new ModelPrompt('doGenerate', options),
      ask: async (report) => {
        const result = await this.model.doGenerate({ ...options, abortSignal, storedBy: DURABLE_MODEL });
        report(result.usage);
        return result;
      },
      storedPart: withoutTransport,
      usageOf: ({ usage }) => usage,
    });
  }

  async doStream(options: ModelCallOptions): Promise<ModelStream> {
    if (options.storedBy === DURABLE_MODEL) return this.model.doStream(options);
    const reader = new AbortController();
    const abortSignal = this.signalWith(options.abortSignal, reader.signal);
    const begun = deferred<ModelStream>();
    const parts = deferred<readonly ModelOutputPart[]>();
    let onUsage: ReportUsage = () => {};
    let maxBytes = Infinity;
    const stored = this.calls.run({
      prompt: new ModelPrompt('doStream', options),
      ask: async (report, limit) => {
        onUsage = report;
        maxBytes = limit;
        begun.resolve(await this.model.doStream({ ...options, abortSignal, storedBy: DURABLE_MODEL }));
        return parts.promise;
      },
      storedPart: (answer) => answer,
      usageOf: (answer) => answer.findLast(({ type }) => type === 'finish')?.usage,
    });
    const first = await Promise.race([begun.promise, stored]);
    if (!('stream' in first)) return { stream: ReadableStream.from(first) };
    // Create the stream outside of the step: code that reads it, such as tools, runs in the context of its creation.
    const live = { parts, stored, signal: abortSignal, reader, onUsage, maxBytes };
    return { ...first, stream: recordStream(first.stream, live) };
  }

  private signalWith(...others: readonly (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.turn.signal, ...others].filter((signal) => signal !== undefined));
  }
}

/** Removes the bodies and headers of request and response, which are large and may contain secrets. */
function withoutTransport({ request: _request, response, ...result }: ModelResult): object {
  if (response === undefined) return result;
  const { headers: _headers, body: _body, ...metadata } = response;
  return { ...result, response: metadata };
}
