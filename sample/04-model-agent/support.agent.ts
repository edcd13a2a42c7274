import { generateText } from 'ai';
import {
  type CompactionInfo,
  Intent,
  type Message,
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

/** A cheap model decides what a message is about; another one answers, with tools that the plan watches over. */
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
      // All of them, always: the plan refuses what must not be now, and says so to the model.
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

  /** In the place of old messages, so that a long conversation costs what a short one does. */
  @Summarize()
  async sumUp(messages: readonly Message[], { signal }: CompactionInfo): Promise<Summary> {
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
