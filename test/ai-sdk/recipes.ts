// The recipes of docs/ai-sdk.md. Each region is shown there as it is here.
import { type LanguageModelV3 } from '@ai-sdk/provider';
import { Inject, Injectable } from '@nestjs/common';
import { Chat } from '@ai-sdk/react';
import {
  type DefaultChatTransport,
  extractReasoningMiddleware,
  generateText,
  lastAssistantMessageIsCompleteWithToolCalls,
  Output,
  tool,
  ToolLoopAgent,
  type ToolSet,
  type UIMessage,
  wrapLanguageModel,
} from 'ai';

import {
  Intent,
  type MessageDraft,
  Orchestrator,
  type OrchestratorHandle,
  reply,
  type TurnContext,
} from 'nestjs-agent-sessions';
import {
  durableCalls,
  durableModel,
  durableTools,
  streamReply,
  toModelMessages,
  uiStream,
} from 'nestjs-agent-sessions/ai-sdk';
import { z } from 'zod';

export const MODELS = Symbol('models');

// #region structured output
async function classify(turn: TurnContext, model: LanguageModelV3) {
  const { output } = await generateText({
    model: durableModel(turn, model),
    output: Output.object({ schema: z.object({ topic: z.string(), isUrgent: z.boolean() }) }),
    messages: await toModelMessages([...turn.history, said(turn)]),
    allowSystemInMessages: true, // summaries of the conversation
  });
  return reply(`This is about ${output.topic}.`, { data: output });
}

/** The user's message, with its attachments. */
function said({ input }: TurnContext): MessageDraft {
  return { role: 'user', content: input.content ?? input.text };
}
// #endregion

// #region parallel calls
async function compare(turn: TurnContext, model: LanguageModelV3, topics: readonly string[]) {
  const answers = await Promise.all(
    topics.map((topic) => generateText({ model: durableModel(turn, model, { key: topic }), prompt: topic })),
  );
  return reply(answers.map(({ text }) => text).join('\n'));
}
// #endregion

// #region middlewares
async function answerWithoutThoughts(turn: TurnContext, model: LanguageModelV3) {
  const wrapped = wrapLanguageModel({
    model,
    middleware: [
      durableCalls(turn), // each call is a stored step
      extractReasoningMiddleware({ tagName: 'think' }), // runs only when the provider is asked
    ],
  });
  const { text } = await generateText({ model: wrapped, prompt: turn.input.text });
  return reply(text);
}
// #endregion

// #region sub-agent
function answerWithResearch(turn: TurnContext, model: LanguageModelV3, search: ToolSet) {
  const research = tool({
    description: 'Researches a question.',
    inputSchema: z.object({ question: z.string() }),
    execute: async ({ question }, { abortSignal }) => {
      const agent = new ToolLoopAgent({
        model: durableModel(turn, model),
        tools: durableTools(turn, search),
      });
      const { text } = await agent.generate({ prompt: question, ...(abortSignal && { abortSignal }) });
      return text;
    },
  });
  return streamReply(turn, { model, tools: { research } });
}
// #endregion

// #region orchestrator as a tool
function answerWithColleague(turn: TurnContext, model: LanguageModelV3, researcher: OrchestratorHandle) {
  const colleague = researcher.asTool(turn, { description: 'Researches a question.' });
  return streamReply(turn, { model, tools: { [colleague.name]: colleague } });
}
// #endregion

// #region progress
async function answerWithProgress(turn: TurnContext, model: LanguageModelV3) {
  const ui = await uiStream(turn);
  await ui.write({ type: 'data-progress', id: 'progress', data: { done: 0 } });
  const found = await turn.step('search', () => search(turn.input.text));
  await ui.write({ type: 'data-progress', id: 'progress', data: { done: 1 } });
  return streamReply(turn, { model, system: `Answer with these facts: ${found}` });
}
// #endregion

// #region answer without streamReply
async function answerWithText(turn: TurnContext, words: AsyncIterable<string>) {
  const ui = await uiStream(turn);
  let text = '';
  await ui.write({ type: 'start' });
  await ui.write({ type: 'start-step' });
  await ui.write({ type: 'text-start', id: 'text' });
  for await (const delta of words) {
    text += delta;
    await ui.write({ type: 'text-delta', id: 'text', delta });
  }
  await ui.write({ type: 'text-end', id: 'text' });
  await ui.write({ type: 'finish-step' });
  await ui.write({ type: 'finish' });
  return reply(text);
}
// #endregion

// #region tool of the page
const locate = tool({ description: 'Finds the place of the user.', inputSchema: z.object({}) });

function openChat(id: string, transport: DefaultChatTransport<UIMessage>, findPlace: () => Promise<string>) {
  const chat = new Chat({
    id,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: async ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName !== 'locate') return;
      const output = await findPlace();
      void chat.addToolOutput({ tool: toolName, toolCallId, output });
    },
  });
  return chat;
}
// #endregion

// #region patient fetch
/** Repeats a request until a server accepts the connection. */
async function patientFetch(...request: Parameters<typeof fetch>) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fetch(...request);
    } catch (error) {
      if (attempt === 60 || request[1]?.signal?.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
// #endregion

// #region models by name
@Injectable()
export class Models {
  constructor(@Inject(MODELS) private readonly byName: Readonly<Record<string, LanguageModelV3>>) {}

  get(name: string): LanguageModelV3 {
    const model = this.byName[name];
    if (!model) throw new Error(`There is no model named ${name}.`);
    return model;
  }
}

@Orchestrator({ name: 'writer', version: '1' })
export class Writer {
  constructor(private readonly models: Models) {}

  @Intent()
  write(turn: TurnContext) {
    return streamReply(turn, { model: this.models.get('fast') });
  }
}
// #endregion

async function search(text: string): Promise<string> {
  return `${text}: forty-two`;
}

export {
  answerWithColleague,
  answerWithProgress,
  answerWithResearch,
  answerWithText,
  answerWithoutThoughts,
  classify,
  compare,
  locate,
  openChat,
  patientFetch,
};
