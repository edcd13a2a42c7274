import {
  defineOrchestrator,
  OrchestrationStateManager,
  reply,
  type SessionsAdapter,
  type SessionsModuleOptions,
  type TokenCounts,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';
import { failUntil } from './fixtures/desk.js';
import { type Part, partsOf, type Script, type ScriptedModel, SDKS, textParts, USAGE } from './fixtures/models.js';

type Work = (turn: TurnContext) => Promise<unknown>;

/** The usage of a number of answers, and of calls without one. */
function usageOf(answers: number, unknownCalls = 0): TokenCounts {
  const tokens = { promptTokens: 10 * answers, completionTokens: 2 * answers, totalTokens: 12 * answers };
  return unknownCalls === 0 ? tokens : { ...tokens, unknownCalls };
}

async function startDesk(adapter: SessionsAdapter, options: SessionsModuleOptions['turns'] = {}) {
  const desk = defineOrchestrator({
    name: 'desk',
    tokenBudget: 1_000_000,
    intents: {
      answer: async (turn) => {
        await (turn.context.work as Work)(turn);
        return reply('Done.');
      },
    },
  });
  const retry = { attempts: 5, backoff: { type: 'fixed' as const, delayMs: 1 } };
  const { app, turns, session } = await startApplication({
    adapter,
    orchestrators: [desk],
    turns: { retry, ...options },
  });
  const manager = app.get(OrchestrationStateManager, { strict: false }).of('desk');
  const sessionId = await session();
  return {
    turns,
    submit: (work: Work) => turns.submit('desk', 'hi', { sessionId, context: { work } }),
    /** Checks the usage of a turn that has ended, in all places that have it. */
    expectUsage: async (id: string, usage: TokenCounts) => {
      const turn = await turns.get(id);
      expect(turn?.usage).toEqual({ ...usage, roles: { intents: usage } });
      expect(turn?.report?.usage).toEqual({ ...usage, intents: usage });
      expect((await manager.getState(sessionId))?.cumulativeTokenUsage).toEqual(usage);
    },
  };
}

const finish = (usage: unknown, unified = 'stop') =>
  ({ type: 'finish', finishReason: { unified, raw: unified }, usage }) as unknown as Part;
const failure: Part = { type: 'error', error: new Error('The server is overloaded.') };
const begun = textParts('One two').slice(0, -1);
/** What the SDK passes on for a provider that sends no usage. */
const NO_USAGE = { inputTokens: { total: undefined }, outputTokens: { total: undefined } };

/** A stream that does not end. */
function stalled(...parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part);
    },
  });
}

/** First answers that fail: those whose provider sends the usage, and others. */
const FAILURES: Record<string, { readonly isKnown: boolean; readonly answer: () => ReturnType<Script> }> = {
  'is rejected': {
    isKnown: false,
    answer: () => {
      throw new Error('The server is overloaded.');
    },
  },
  'breaks off': { isKnown: false, answer: () => begun },
  'has an error': { isKnown: false, answer: () => [...begun, failure] },
  'has an error, and does not end': { isKnown: false, answer: () => stalled(...begun, failure) },
  'has an error, and ends without usage': {
    isKnown: false,
    answer: () => [...begun, failure, finish(NO_USAGE, 'error')],
  },
  'has an error, and ends with usage': { isKnown: true, answer: () => [...begun, failure, finish(USAGE, 'error')] },
  'is interrupted, with usage': { isKnown: true, answer: () => [...begun, finish(USAGE, 'interrupted')] },
};

describe.each(SDKS.slice(0, 2))('the tokens of model calls that fail with $name', ({ sdk, scripted }) => {
  const options = { prompt: 'Hi', maxRetries: 0, onError: () => {} };
  /** Open when a reader has got text. */
  let started = gate();

  async function stream(turn: TurnContext, model: ScriptedModel['model'], key?: string): Promise<void> {
    const durable = durableModel(turn, model, { key });
    const result = sdk.streamText({ ...options, model: durable, abortSignal: turn.signal });
    for await (const delta of result.textStream) if (delta) started.open();
    await result.text;
  }

  describe.each(SAMPLED_STORES)('over $name', ({ open }) => {
    it.each(Object.entries(FAILURES))('AIS-36 count if the answer %s', async (_, { isKnown, answer }) => {
      const { model } = scripted((call) => (call > 1 ? { text: 'Done.' } : answer()));
      const desk = await startDesk(open());
      const { id } = await desk.submit(async (turn) => {
        await stream(turn, model);
        failUntil(4, turn);
      });
      const usage = isKnown ? usageOf(2) : usageOf(1, 1);
      expect((await desk.turns.result(id)).usage).toEqual(usage);
      await desk.expectUsage(id, usage);
    });

    it('AIS-36 count for each retry of the SDK', async () => {
      const { model } = scripted((call) => {
        if (call === 3) return { text: 'Done.' };
        const [url, requestBodyValues, responseHeaders] = ['https://example.com', {}, { 'retry-after-ms': '1' }];
        throw new sdk.APICallError({ message: 'no', url, requestBodyValues, responseHeaders, isRetryable: true });
      });
      const desk = await startDesk(open());
      const { id } = await desk.submit((turn) =>
        sdk.generateText({ prompt: 'Hi', maxRetries: 2, model: durableModel(turn, model) }),
      );
      await desk.turns.result(id);
      await desk.expectUsage(id, usageOf(1, 2));
    });

    it('AIS-36 count if the turn is cancelled during the answer', async () => {
      const { model } = scripted((call) => (call === 1 ? { text: 'One.' } : stalled(...begun)));
      const first = gate();
      const desk = await startDesk(open());
      const { id } = await desk.submit(async (turn) => {
        await stream(turn, model);
        started = gate();
        first.open();
        await stream(turn, model, 'second');
      });
      await first.pass();
      await started.pass();
      await desk.turns.cancel(id);
      await rejection(desk.turns.result(id), TurnCancelledError);
      await desk.expectUsage(id, usageOf(1, 1));
    });

    it('AIS-36 count if the answers take too long', async () => {
      const { model } = scripted(() => stalled(...begun));
      const desk = await startDesk(open(), { timeoutMs: 500, retry: { attempts: 2, backoff: { delayMs: 1 } } });
      const { id } = await desk.submit((turn) => stream(turn, model));
      await rejection(desk.turns.result(id), TurnFailedError);
      await desk.expectUsage(id, usageOf(0, 2));
    });

    it('AIS-36 count once if the provider sends none with its answers, however often they are read', async () => {
      const { model } = scripted(() => [...partsOf({ text: 'Done.' }).slice(0, -1), finish(NO_USAGE)]);
      const desk = await startDesk(open());
      const { id } = await desk.submit(async (turn) => {
        await stream(turn, model);
        failUntil(3, turn);
      });
      await desk.turns.result(id);
      await desk.expectUsage(id, usageOf(0, 1));
      const report = (await desk.turns.get(id))?.report as unknown as { iterations: { intents: unknown[] }[] };
      expect(report.iterations[0].intents).toMatchObject([{ usage: usageOf(0, 1) }]);
    });

    it('AIS-36 count in parallel calls, of which one fails', async () => {
      const { model } = scripted((_, { prompt }) => {
        const [{ text }] = prompt[0].content as { text: string }[];
        if (text === 'b') throw new Error('The server is overloaded.');
        return { text: 'Done.' };
      });
      const desk = await startDesk(open());
      const { id } = await desk.submit(async (turn) => {
        const ask = (key: string) =>
          sdk.generateText({ prompt: key, maxRetries: 0, model: durableModel(turn, model, { key }) });
        await Promise.allSettled(['a', 'b', 'c'].map(ask));
        failUntil(2, turn);
      });
      await desk.turns.result(id);
      // Attempt 2 makes the failed call again.
      await desk.expectUsage(id, usageOf(2, 2));
    });

    it('AIS-36 do not count if the provider is not asked, because the budget is used up', async () => {
      const { model } = scripted(() => ({ text: 'Done.' }));
      const desk = await startDesk(open());
      const { id } = await desk.submit(async (turn) => {
        turn.usage.add({ totalTokens: 1_000_000 });
        await stream(turn, model).catch(() => undefined);
      });
      await desk.turns.result(id);
      expect((await desk.turns.get(id))?.usage).not.toHaveProperty('unknownCalls');
    });
  });
});
