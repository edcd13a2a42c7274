import { type LanguageModelMiddleware } from 'ai';
import { checkInput } from '../common/check-input.js';
import { DurableLanguageModel, DurableModelOptions } from './durable-model.js';
import { assertLanguageModel, type ModelCallOptions, type ModelResult, type ModelStream } from './language-model.js';
import { ModelCalls, type ModelTurn } from './model-calls.js';

/** A call as the SDK gives it to a middleware. */
interface WrappedCall {
  readonly model: unknown;
  readonly params: ModelCallOptions;
}

/**
 * Returns a middleware for `wrapLanguageModel` of the AI SDK which makes the calls of a model stored steps of the turn,
 * as {@link durableModel} does (AIS-37). Use one for each loop.
 *
 * ```ts
 * const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: [durableCalls(turn), logCalls] });
 * ```
 *
 * The answer is stored as the middlewares after this one return it. They run only when the model is called. Middlewares
 * before this one run in every attempt, and must then change a prompt in the same way.
 *
 * A call throws what a call of {@link durableModel} throws.
 * @throws InvalidInputError
 */
export function durableCalls(turn: ModelTurn, options: DurableModelOptions = {}): LanguageModelMiddleware {
  const { key } = checkInput(DurableModelOptions, options, 'options');
  const calls = new ModelCalls(turn, key);
  const durable = (model: unknown): DurableLanguageModel => {
    assertLanguageModel(model);
    return new DurableLanguageModel(turn, model, calls);
  };
  const middleware = {
    // Version 7 of the SDK accepts it as well.
    specificationVersion: 'v3' as const,
    wrapGenerate: async ({ model, params }: WrappedCall): Promise<ModelResult> => durable(model).doGenerate(params),
    wrapStream: async ({ model, params }: WrappedCall): Promise<ModelStream> => durable(model).doStream(params),
  };
  return middleware as unknown as LanguageModelMiddleware;
}
