import { Inject } from '@nestjs/common';
import { tool } from 'ai';
import { Intent, Orchestrator, SessionStore, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { type AnyLanguageModel, idempotencyKeyOf, streamReply } from 'nestjs-agent-sessions/ai-sdk';
import { z } from 'zod';
import { CHAT_MODEL } from './chat-model.js';
import { OrdersService } from './orders.service.js';

/** The support of a shop. Calls of the model and of tools are stored, so that a crash repeats none of them. */
@Orchestrator({ name: 'shop-assistant', version: '1', historyWindow: 40 })
export class ShopAssistant {
  private readonly tools = {
    findOrder: tool({
      description: 'Finds an order by its number.',
      inputSchema: z.object({ orderId: z.string() }),
      execute: ({ orderId }) => this.orders.find(orderId),
    }),
    refundOrder: tool({
      description: 'Refunds an order. The user must approve it.',
      inputSchema: z.object({ orderId: z.string(), euros: z.number() }),
      needsApproval: true,
      execute: ({ orderId, euros }, options) => this.orders.refund(orderId, euros, idempotencyKeyOf(options)),
    }),
  };

  constructor(
    @Inject(CHAT_MODEL) private readonly model: AnyLanguageModel,
    private readonly orders: OrdersService,
    private readonly sessions: SessionStore,
  ) {}

  @Intent()
  async chat(turn: TurnContext): Promise<TurnOutcome> {
    if (turn.turnIndex === 0) await this.nameChat(turn);
    return streamReply(turn, {
      model: this.model,
      system: 'You are the support of a shop. Find an order before you talk about it.',
      tools: this.tools,
      // The page marks an answer that continues after a crash.
      messageMetadata: () => (turn.attempt > 1 ? { continued: true } : undefined),
    });
  }

  /** The list of chats shows the title. */
  private async nameChat({ sessionId, input }: TurnContext): Promise<void> {
    await this.sessions.updateMetadata(sessionId, { title: input.text.slice(0, 60) || 'Attachment' });
  }
}
