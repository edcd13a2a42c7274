import * as ai7 from '../ai-7/ai.js';
import { defineOrchestrator, type OrchestratorRef, type TurnContext } from 'nestjs-agent-sessions';
import { scriptedModel, type ScriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { assertShown } from '../../lib/testing/chat/shown-answer.js';
import { type ChatApp, startChatApp } from '../http/chat-app.js';
import { type PLATFORMS } from '../http/http-app.js';

export const QUESTION = 'Where is order 7? And refund order 9.';

export interface Shop extends ChatApp {
  readonly model: ScriptedModel;
  /** Fails if a version of an answer has text that the model has not answered, or has a part twice. */
  readonly onShown: (answer: AnyUIMessage) => void;
}

export interface ShopOptions {
  readonly platform?: (typeof PLATFORMS)[number];
  /** Awaited before each word of the last answer, from 0. */
  readonly before?: (word: number) => unknown;
}

/** Starts a shop that looks up an order and refunds another. Each answer has other words. */
export async function startShop({ platform, before }: ShopOptions = {}): Promise<Shop> {
  const sdk = ai7 as unknown as Parameters<typeof streamReplyWith>[0] & Pick<typeof ai7, 'tool'>;
  const model = scriptedModel(({ said, step, calls }) => {
    if (said.startsWith('Fail')) return new Error('The model is out of order.');
    if (said.startsWith('Count')) return { text: spaced(`One two three (version ${calls}) four five.`, before) };
    return step === 0
      ? {
          reasoning: `I need two tools (version ${calls}).`,
          text: `One moment, please (version ${calls}).`,
          calls: [
            { name: 'findOrder', input: { orderId: '7' } },
            { name: 'refundOrder', input: { orderId: '9' } },
          ],
        }
      : { text: spaced(`Order 7 is shipped, and order 9 is refunded (version ${calls}).`, before) };
  });
  const tool = (result: string, needsApproval: boolean) =>
    sdk.tool({
      inputSchema: z.object({ orderId: z.string() }),
      needsApproval,
      execute: ({ orderId }: { orderId: string }) => ({ orderId, result }),
    });
  const tools = { findOrder: tool('shipped', false), refundOrder: tool('refunded', true) };
  const orchestrator: OrchestratorRef = defineOrchestrator({
    name: 'shop',
    intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools } as never) },
  });
  const app = await startChatApp({
    orchestrators: [orchestrator],
    // The transport sends no headers. A browser would send a cookie.
    principal: () => ({ userId: 'ann' }),
    turns: { events: { batchMs: 0 }, retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } },
    chat: { maxStreamsPerPrincipal: 100 },
    ...(platform ? { platform } : {}),
  });
  const onShown = (answer: AnyUIMessage): void =>
    assertShown(
      answer,
      model.calls.flatMap(({ text, reasoning }) => [text, reasoning]),
      undefined,
    );
  return { ...app, model, onShown };
}

async function* spaced(text: string, before: ShopOptions['before']): AsyncGenerator<string, void> {
  for (const [index, word] of text.split(/(?<= )/).entries()) {
    await before?.(index);
    yield word;
  }
}
