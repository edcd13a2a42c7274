import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible as createModels6 } from '@ai-sdk/openai-compatible';
import { type LanguageModelV3 } from '@ai-sdk/provider';
import { defineOrchestrator, memoryAdapter, reply, type TurnContext, TurnFailedError } from 'nestjs-agent-sessions';
import { createOpenAICompatible as createModels7 } from '../ai-7/openai-compatible.js';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { inProduction } from '../support/production.js';
import { rejection, startApplication } from '../support/running-application.js';
import { inOrder, startProvider } from '../support/scripted-provider.js';
import { SDKS } from './fixtures/models.js';

const SET = 'Set the API key or setting of the model provider for every process that runs turns';
const CHECK = (status: number): string => `The model provider has answered ${status}. Check the API key`;

describe.each(SDKS)('a provider without access, with $name', ({ name: version, sdk, scripted }) => {
  const { OPENAI_API_KEY } = process.env;

  beforeEach(() => delete process.env.OPENAI_API_KEY);

  afterEach(() => {
    if (OPENAI_API_KEY !== undefined) process.env.OPENAI_API_KEY = OPENAI_API_KEY;
  });

  /** Executes a turn that fails. */
  async function failedTurn(work: (turn: TurnContext) => Promise<string>) {
    const { lines, logger } = capturingLogger();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: async (turn) => reply(await work(turn)) } });
    const retry = { attempts: 3, backoff: { type: 'fixed' as const, delayMs: 1 } };
    const app = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk], logger, turns: { retry } });
    const error = await rejection(app.turns.execute('desk', 'hi', { sessionId: await app.session() }), TurnFailedError);
    const { failures } = (await app.turns.get(error.turnId)) ?? {};
    await app.close();
    return { failure: error.failure, failures, entries: lines.filter((line) => /^(warn|error) Turn /.test(line)) };
  }

  const ask =
    (model: LanguageModelV3, isStream: boolean) =>
    async (turn: TurnContext): Promise<string> => {
      const call = { model: durableModel(turn, model), prompt: 'Hi', maxRetries: 0 };
      if (!isStream) return (await sdk.generateText(call)).text;
      let failure: unknown;
      const { text } = sdk.streamText({ ...call, onError: ({ error }) => void (failure = error) });
      return Promise.resolve(text).catch(() => Promise.reject(failure as Error));
    };

  const modelAt = (baseURL: string): LanguageModelV3 =>
    version === 'ai 7'
      ? (createModels7({ name: 'scripted', baseURL })('model') as unknown as LanguageModelV3)
      : createModels6({ name: 'scripted', baseURL })('model');

  it.each([true, false])('AIS-05 DAY-02 does not retry without an API key, streamed: %s', async (isStream) => {
    const { failure, failures, entries } = await failedTurn(ask(createOpenAI()('gpt-5'), isStream));

    expect(failure).toMatchObject({ name: 'AI_LoadAPIKeyError' });
    expect(failures).toBe(1);
    expect(entries).toEqual([expect.stringContaining('in intent answer, with an error that is not retried.')]);
    expect(entries[0]).toContain('AI_LoadAPIKeyError: OpenAI API key is missing.');
    expect(entries[0]).toContain(`OPENAI_API_KEY environment variable.\n${SET}`);
  });

  it.each(['LoadAPIKeyError', 'LoadSettingError'] as const)('AIS-05 does not retry after %s', async (name) => {
    const { model } = scripted(() => {
      throw new sdk[name]({ message: 'It is missing.' });
    });
    const { failures, entries } = await failedTurn(ask(model, false));

    expect(failures).toBe(1);
    expect(entries).toEqual([expect.stringContaining(`It is missing.\n${SET}`)]);
  });

  it.each([401, 403])('AIS-05 DAY-02 does not retry a request that is refused with %s', async (status) => {
    const provider = await startProvider(inOrder({ status, message: 'Incorrect API key.' }));
    const { failure, failures, entries } = await failedTurn(ask(modelAt(provider.baseURL), true));

    expect(failure).toMatchObject({ name: 'AI_APICallError', message: 'Incorrect API key.' });
    expect(failures).toBe(1);
    expect(provider.asked).toHaveLength(1);
    expect(entries).toEqual([expect.stringContaining(`Incorrect API key.\n${CHECK(status)}`)]);
  });

  it.each<[number, boolean | undefined]>([
    [400, undefined],
    [500, undefined],
    [401, true],
  ])('AIS-05 retries after status %s, marked as retryable: %s', async (statusCode, isRetryable) => {
    const { model, asked } = scripted(() => {
      throw new sdk.APICallError({ message: 'no', url: '', requestBodyValues: {}, statusCode, isRetryable });
    });
    const { failures, entries } = await failedTurn(ask(model, false));

    expect([failures, asked.length]).toEqual([3, 3]);
    expect(entries.join()).not.toContain('API key');
  });

  it('AIS-05 lets a handler catch the error and use another model', async () => {
    const { model } = scripted(() => ({ text: 'From the other model.' }));
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: (turn) =>
          ask(
            createOpenAI()('gpt-5'),
            false,
          )(turn).catch(async () => {
            const fallback = durableModel(turn, model, { key: 'fallback' });
            return (await sdk.generateText({ model: fallback, prompt: 'Hi' })).text;
          }),
      },
    });
    const app = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk] });
    const result = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'From the other model.' });
  });

  describe('in production', () => {
    inProduction();

    it('AIS-05 NST-22 logs what to do, without the message of the error', async () => {
      const { entries } = await failedTurn(ask(createOpenAI()('gpt-5'), false));

      expect(entries).toEqual([expect.stringContaining(`AI_LoadAPIKeyError\n${SET}`)]);
      expect(entries[0]).not.toContain('OPENAI_API_KEY');
    });
  });
});
