import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { tool } from 'ai';
import { defineOrchestrator, type OrchestratorRef, type TurnContext } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { streamReply } from '../../lib/ai-sdk/index.js';
import { type Script } from '../../sample/06-ai-chat/provider/script.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { type ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { startProvider } from '../support/scripted-provider.js';

const ORDER = { id: '7', item: 'a lamp', euros: 40, status: 'shipped' };

const findOrder = tool({
  inputSchema: z.object({ orderId: z.string() }),
  execute: ({ orderId }) => (orderId === '7' ? ORDER : `There is no order ${orderId}.`),
});
const refundOrder = tool({
  inputSchema: z.object({ orderId: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ euros }) => ({ receipt: 'R-1', euros }),
});
/** A tool that the client runs. */
const locate = tool({ inputSchema: z.object({}) });

export interface Assistant {
  readonly orchestrator: OrchestratorRef;
  readonly provider: ScriptedProvider;
}

/** Starts a provider, and an assistant that answers with it. */
export async function startAssistant(script: Script = shopAssistant, name = 'assistant'): Promise<Assistant> {
  const provider = await startProvider(script);
  const models = createOpenAICompatible({
    name: 'scripted',
    baseURL: provider.baseURL,
    includeUsage: true,
    // As with real providers, the SDK does not download these files.
    supportedUrls: () => ({ 'image/*': [/^https:/] }),
  });
  const orchestrator = defineOrchestrator({
    name,
    intents: {
      answer: (turn: TurnContext) =>
        streamReply(turn, { model: models('model'), tools: { findOrder, refundOrder, locate } }),
    },
  });
  return { orchestrator, provider };
}
