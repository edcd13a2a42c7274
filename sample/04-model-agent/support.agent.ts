import { generateText } from 'ai';
import {
  type CompactionInfo,
  Intent,
  type ConversationMessage,
  Orchestrator,
  Summarize,
  type Summary,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { z } from 'zod';
import { answer } from './answer.js';
import { toTranscript, toUsage } from './messages.js';
import { ModelRouter } from './model-router.js';
import { Models } from './models.js';
import { OrdersService } from './orders.service.js';
import { SUPPORT_STEPS } from './support-plan.js';
import { turnTool } from './turn-tool.js';

const order = z.object({ orderId: z.string().describe('The number of the order.') });

/** A cheap model classifies messages. Another one answers, with tools that the plan restricts. */
@Orchestrator({
  name: 'support',
  version: '1',
  router: ModelRouter,
  historyWindow: { router: 4, agents: 40 },
  compaction: { afterTurns: 20, keep: 6 },
  steps: SUPPORT_STEPS,
  tokenBudget: 200_000,
})
export class SupportAgent {
  constructor(
    private readonly models: Models,
    private readonly orders: OrdersService,
  ) {}

  @Intent('small-talk')
  smallTalk(turn: TurnContext): Promise<TurnOutcome> {
    return answer(turn, {
      model: this.models.cheap,
      system: 'You are the friendly voice of a shop. You can say where orders are, and refund them. Be brief.',
    });
  }

  @Intent('orders')
  answerAboutOrders(turn: TurnContext): Promise<TurnOutcome> {
    const { stepDescription = '' } = turn.tools.toAIOrchestrationState();
    return answer(turn, {
      model: this.models.chat,
      system: `You work for the support of a shop. ${stepDescription} Be brief.`,
      // Always offer all tools: the plan refuses those that are not allowed, with a message for the model.
      tools: {
        find_order: turnTool(turn, 'find_order', 'What was ordered, and where it is.', order, ({ orderId }) =>
          JSON.stringify(this.orders.find(orderId)),
        ),
        refund_order: turnTool(
          turn,
          'refund_order',
          'Pays the money for an order back.',
          order,
          ({ orderId }, { key }) => this.orders.refund(orderId, key),
        ),
      },
    });
  }

  /** Replaces old messages by a summary, so that a long conversation costs as little as a short one. */
  @Summarize()
  async sumUp(messages: readonly ConversationMessage[], { signal }: CompactionInfo): Promise<Summary> {
    const { text, usage } = await generateText({
      model: this.models.cheap,
      system:
        'Sum up in a few sentences what a shop and its user have said. Keep names, numbers, and what was promised.',
      prompt: toTranscript(messages),
      abortSignal: signal,
    });
    return { text, usage: toUsage(usage) };
  }
}
