import { stepCountIs, type StopCondition, streamText, type ToolSet } from 'ai';
import { reply, ToolNotAllowedError, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { durable } from './durable-model.js';
import { toMessages, toModelMessages, toUsage } from './messages.js';
import { type Model } from './models.js';
import { ToolError } from './turn-tool.js';

export interface Role {
  readonly model: Model;
  readonly system: string;
  readonly tools?: ToolSet;
}

/** The maximum number of model calls in a turn. The model must answer in the last one. */
const MAX_ROUNDS = 8;

/** Answers a turn with a model. */
export async function answer(turn: TurnContext, { model, system, tools = {} }: Role): Promise<TurnOutcome> {
  turn.usage.assertWithinBudget();
  const result = streamText({
    model: durable(model, turn),
    system,
    messages: [...toModelMessages(turn.history), { role: 'user', content: turn.input.text }],
    // Summaries of a conversation are system messages in its history.
    allowSystemInMessages: true,
    tools,
    stopWhen: [stepCountIs(MAX_ROUNDS), hasFailed],
    prepareStep: ({ stepNumber }) => (stepNumber < MAX_ROUNDS - 1 ? {} : { toolChoice: 'none' }),
    abortSignal: turn.signal,
    // The turn is retried instead, and reuses its stored steps.
    maxRetries: 0,
    onError: () => undefined,
  });
  for await (const part of result.fullStream) {
    switch (part.type) {
      case 'error':
        throw part.error;
      case 'finish-step':
        // Count tokens after each model call, so that a later failure does not lose them.
        turn.usage.add(toUsage(part.usage));
        break;
      case 'tool-error':
        if (!isForTheModel(part.error)) throw part.error;
        void turn.emit({ type: 'tool', data: { tool: part.toolName, failed: textOf(part.error) } });
        break;
      case 'tool-result':
        void turn.emit({ type: 'tool', data: { tool: part.toolName, result: String(part.output) } });
    }
  }
  turn.signal.throwIfAborted();
  return reply(await result.text, { messages: toMessages((await result.response).messages) });
}

/** Stops the loop after an error that a model cannot correct, such as a lost lease or an unavailable system. It fails the attempt. */
const hasFailed: StopCondition<ToolSet> = ({ steps }) =>
  steps.some(({ content }) => content.some((part) => part.type === 'tool-error' && !isForTheModel(part.error)));

/** Returns whether the model reads the error and can correct its call. The SDK reports invalid calls as strings. */
function isForTheModel(error: unknown): boolean {
  return ToolNotAllowedError.isInstance(error) || error instanceof ToolError || typeof error === 'string';
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
