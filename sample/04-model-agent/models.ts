import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { type wrapLanguageModel } from 'ai';

/** A model of a provider package of the SDK. */
export type Model = Parameters<typeof wrapLanguageModel>[0]['model'];

/** The models of the application. */
export abstract class Models {
  /** Answers users, with tools. */
  abstract readonly chat: Model;
  /** Classifies messages and summarizes conversations. */
  abstract readonly cheap: Model;
}

export interface ModelOptions {
  readonly baseURL: string;
  readonly apiKey?: string;
  readonly chat: string;
  readonly cheap: string;
}

/** Creates models for any API that is compatible with OpenAI's chat completions. */
export function openModels({ chat, cheap, ...settings }: ModelOptions): Models {
  const provider = createOpenAICompatible({
    name: 'provider',
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...settings,
  });
  return { chat: provider(chat), cheap: provider(cheap) };
}
