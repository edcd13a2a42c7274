import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { gateway } from 'ai';
import { type AnyLanguageModel } from 'nestjs-agent-sessions/ai-sdk';
import { ScriptedProvider } from './provider/scripted-provider.js';
import { shopAssistant } from './provider/shop-assistant.js';

/** The token of the model. */
export const CHAT_MODEL = Symbol('chat model');

/**
 * Returns a real model if `AI_GATEWAY_API_KEY` is set, otherwise a local model with scripted answers. `PROVIDER_URL` is
 * the address of a provider in another process.
 */
export async function openChatModel(): Promise<AnyLanguageModel> {
  const { AI_GATEWAY_API_KEY, MODEL = 'openai/gpt-5-mini', PROVIDER_URL } = process.env;
  if (AI_GATEWAY_API_KEY) return gateway(MODEL);
  const baseURL = PROVIDER_URL ?? (await ScriptedProvider.start(shopAssistant, { pauseMs: 60 })).unref().baseURL;
  return createOpenAICompatible({ name: 'scripted', baseURL, includeUsage: true })('shop-assistant');
}
