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

/** Of calls and results in a turn; in the last one the model must answer. */
const MAX_ROUNDS = 8;

/** Lets a model answer the turn. */
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
    // The turn is tried again instead, with what is stored of it.
    maxRetries: 0,
    onError: () => undefined,
  });
  for await (const part of result.fullStream) {
    switch (part.type) {
      case 'error':
        throw part.error;
      case 'finish-step':
        // Round by round: an attempt that fails later has counted what it took.
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

/** A lost lease, or a system that is away: no model can do better then, so it must not be asked about it. */
const hasFailed: StopCondition<ToolSet> = ({ steps }) =>
  steps.some(({ content }) => content.some((part) => part.type === 'tool-error' && !isForTheModel(part.error)));

/** The SDK says in texts what is wrong with a call itself. */
function isForTheModel(error: unknown): boolean {
  return error instanceof ToolNotAllowedError || error instanceof ToolError || typeof error === 'string';
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
