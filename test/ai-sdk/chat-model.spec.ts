import { jest } from '@jest/globals';
import { openChatModel } from '../../sample/06-ai-chat/chat-model.js';

afterEach(() => jest.restoreAllMocks());

it.each<[string, NodeJS.ProcessEnv, object]>([
  [
    'a real model if its key is set',
    { AI_GATEWAY_API_KEY: 'key', PROVIDER_URL: 'http://127.0.0.1/v1' },
    { provider: 'gateway', modelId: 'openai/gpt-5-mini' },
  ],
  [
    'the real model that MODEL names',
    { AI_GATEWAY_API_KEY: 'key', MODEL: 'anthropic/claude' },
    { provider: 'gateway', modelId: 'anthropic/claude' },
  ],
  [
    'a scripted model without a key',
    { PROVIDER_URL: 'http://127.0.0.1/v1' },
    { provider: 'scripted.chat', modelId: 'shop-assistant' },
  ],
])('AIS-01 AIS-20 opens %s, without a request', async (_, env, model) => {
  jest.replaceProperty(process, 'env', env);
  const request = jest.spyOn(globalThis, 'fetch');
  expect(await openChatModel()).toMatchObject(model);
  expect(request).not.toHaveBeenCalled();
});
