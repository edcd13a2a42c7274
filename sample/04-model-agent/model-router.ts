import { Injectable } from '@nestjs/common';
import { generateText, Output } from 'ai';
import { IntentRouter, type RouteDecision, type TurnContext } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { toModelMessages, toUsage } from './messages.js';
import { Models } from './models.js';

const SYSTEM = 'You sort what users of a shop write. Say in one sentence what it is about, and then the intent.';

/** Classifies a message with a cheap model. */
@Injectable()
export class ModelRouter extends IntentRouter {
  constructor(private readonly models: Models) {
    super();
  }

  async route(turn: TurnContext, intents: readonly string[]): Promise<RouteDecision> {
    const { intent, reasoning, usage } = await turn.step('route', async ({ signal }) => {
      const { output, usage } = await generateText({
        model: this.models.cheap,
        system: SYSTEM,
        messages: [...toModelMessages(turn.history), { role: 'user', content: turn.input.text }],
        allowSystemInMessages: true,
        output: Output.object({ schema: z.object({ reasoning: z.string(), intent: z.enum(intents) }) }),
        abortSignal: signal,
      });
      return { ...output, usage: toUsage(usage) };
    });
    turn.usage.add(usage);
    return { intents: intent, reasoning };
  }
}
