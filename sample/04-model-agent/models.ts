import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { type wrapLanguageModel } from 'ai';

/** As the provider packages of the SDK make them. */
export type Model = Parameters<typeof wrapLanguageModel>[0]['model'];

/** The models that the application asks. */
export abstract class Models {
  /** Answers users, with tools. */
  abstract readonly chat: Model;
  /** Sorts and sums up. */
  abstract readonly cheap: Model;
}

export interface ModelOptions {
  readonly baseURL: string;
  readonly apiKey?: string;
  readonly chat: string;
  readonly cheap: string;
}

/** Models behind any API of the shape of OpenAI's chat completions. */
export function openModels({ chat, cheap, ...settings }: ModelOptions): Models {
  const provider = createOpenAICompatible({
    name: 'provider',
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...settings,
  });
  return { chat: provider(chat), cheap: provider(cheap) };
}
