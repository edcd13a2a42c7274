import {
  convertToModelMessages,
  type ModelMessage,
  type Output,
  type StepResult,
  streamText,
  type ToolModelMessage,
  type ToolSet,
  type UIMessage,
  type UIMessageStreamOptions,
} from 'ai';
import { fromAnswer } from '../chat/stored-messages.js';
import { type UIStream, uiStream } from '../chat/ui-stream.js';
import { type TurnContext } from '../orchestrator/turn-context.js';
import { reply, turnOutcome, type TurnOutcome } from '../orchestrator/turn-outcome.js';
import { type DurableToolsOptions } from './durable-tools.js';
import { type AnyLanguageModel } from './language-model.js';
import { convertStored } from './model-messages.js';
import { END_OF_ANSWER, type LoopOptions, loopSettings } from './reply-settings.js';
import {
  type AnsweredRequest,
  isApproval,
  toApprovalResponse,
  toCallPart,
  type PendingRequest,
  writeResponse,
} from './reply-response.js';
import { assertNotFailed } from './turn-failure.js';
import { approvalOf, toolOutputOf } from './user-answers.js';

const SDK = { streamText, convertToModelMessages };
/** The functions of `ai`, version 6 or 7, that an answer needs. */
export type ReplySdk = typeof SDK;

/** Clients get the text of a tool's error that the model reads: version 6 needs the function, version 7 the flag. */
const TOOL_ERRORS = {
  onError: (error: unknown): string => (error instanceof Error ? error.message : String(error)),
  redactToolErrors: false,
};

/** The members of a turn that an answer uses. */
export type ReplyTurn = Omit<TurnContext, 'state'>;

/** The options of `streamText`. */
type StreamTextOptions<Tools extends ToolSet> = Parameters<typeof streamText<Tools>>[0];
/** The options of `streamText` that the turn decides. @inline */
type Own =
  'model' | 'tools' | 'prompt' | 'messages' | 'output' | 'abortSignal' | 'maxRetries' | 'streamRetries' | 'onError';

/** Options of {@link streamReply}: those of `streamText`, except for those that the turn decides. */
export type StreamReplyOptions<Tools extends ToolSet> = Omit<StreamTextOptions<Tools>, Own> & {
  /**
   * A language model of the AI SDK. It becomes durable, as do the models that `prepareStep` returns. A result of
   * `durableModel` is used with its key. Ids of models are rejected.
   */
  readonly model: AnyLanguageModel;
  /** Tools of the AI SDK. They become durable. Default: none. */
  readonly tools?: Tools;
  /** How interrupted calls of the tools are handled, see {@link DurableToolsOptions}. Default `retry`. */
  readonly onInterrupted?: DurableToolsOptions['onInterrupted'];
  /**
   * The messages for the model. Default: the turn's history, the user's message, and the messages and feedback of
   * earlier iterations.
   */
  readonly messages?: readonly ModelMessage[];
  /** The format of the last step, for example `Output.object({ schema })`: the reply is then JSON. Default: text. */
  readonly output?: Output.Output;
  /** Returns the metadata of the UI message, see `toUIMessageStream`. Default: none. */
  readonly messageMetadata?: UIMessageStreamOptions<UIMessage>['messageMetadata'];
};

/**
 * Answers a turn with a model (AIS-01): `streamText` with `durableModel` and `durableTools`, the stored conversation as
 * prompt, and the answer as UI message stream for the chat controller.
 *
 * ```ts
 * @Intent()
 * chat(turn: TurnContext) {
 *   return streamReply(turn, { model: openai('gpt-5'), system: 'You help with orders.', tools: { findOrder } });
 * }
 * ```
 *
 * A call that needs the user ends the response, and the turn waits for its signal (AIS-16): {@link approvalSignal} for a
 * tool with `needsApproval`, {@link toolOutputSignal} for a tool without `execute`, which the client runs. The answer
 * continues when all signals have arrived. To end an answer with a call, give the tool an `execute`, and use
 * `stopWhen: hasToolCall(name)`.
 *
 * `stopWhen` and `prepareStep` see the steps of the whole answer, also those before a wait. By default, an answer has at
 * most 20 steps. If a condition is met by a step that waits, the answer ends with the results of its calls.
 *
 * The functions among the options run again in every attempt: `prepareStep` must then return the same. The results of
 * `needsApproval`, `toolApproval` and `repairToolCall` are stored. Failed calls are retried with the turn, not by the SDK.
 * @returns the reply: the text of the last step, and one message with all parts of the answer
 * @throws what `durableModel` throws; HandlerError (`PARALLEL_ANSWERS`); AnswerError; InvalidInputError
 */
export function streamReply<Tools extends ToolSet>(
  turn: ReplyTurn,
  options: StreamReplyOptions<Tools>,
): Promise<TurnOutcome> {
  return streamReplyWith(SDK, turn, options);
}

/** Works like {@link streamReply}, with the functions of the given version of the SDK. */
export async function streamReplyWith<Tools extends ToolSet>(
  sdk: ReplySdk,
  turn: ReplyTurn,
  { messages, messageMetadata, ...options }: StreamReplyOptions<Tools>,
): Promise<TurnOutcome> {
  const steps: StepResult<Tools>[] = [];
  const settings = loopSettings(turn, options as LoopOptions, steps);
  const [ui, begin] = await Promise.all([uiStream(turn), messages ?? promptOf(sdk, turn, options.tools)]);
  const prompt = [...begin];
  let answered: readonly AnsweredRequest[] = [];
  for (;;) {
    let failure: { readonly error: unknown } | undefined;
    const onError = ({ error }: { readonly error: unknown }): void => void (failure ??= { error });
    const result = sdk.streamText({
      ...settings,
      messages: [...prompt],
      onError,
    } as unknown as StreamTextOptions<Tools>);
    const chunks = result.toUIMessageStream({ sendSources: true, messageMetadata, ...TOOL_ERRORS });
    const { requests, interrupted } = await writeResponse(ui, chunks, answered, options.tools);
    assertNotFailed(turn);
    if (failure?.error === END_OF_ANSWER) {
      const { text, finishReason } = steps.at(-1)!;
      await ui.write({ type: 'finish', finishReason });
      return outcomeOf(ui, text);
    }
    if (failure) throw failure.error;
    if (requests.length === 0) return outcomeOf(ui, await result.text);
    answered = await Promise.all(requests.map((request) => answerTo(turn, request, steps.length)));
    steps.push(...(await result.steps));
    const content = await toModelContent(sdk, [...answered, ...interrupted], options.tools);
    prompt.push(...(await responseMessagesOf(result)), { role: 'tool', content });
  }
}

function promptOf(sdk: ReplySdk, turn: ReplyTurn, tools: ToolSet | undefined): Promise<ModelMessage[]> {
  const { history, input, messages, feedback } = turn;
  const { text, content = text, metadata } = input;
  const said = { role: 'user' as const, content, ...(metadata && { metadata }) };
  const advice = feedback === undefined ? [] : [{ role: 'user' as const, content: feedback }];
  return convertStored(sdk.convertToModelMessages, [...history, said, ...messages, ...advice], tools && { tools });
}

/** @param step the number of steps before the response that contains the request */
async function answerTo(turn: ReplyTurn, request: PendingRequest, step: number): Promise<AnsweredRequest> {
  const { toolCallId } = request;
  const call = `${turn.iteration} ${step}`;
  if (isApproval(request)) return { ...request, ...(await approvalOf(turn, toolCallId, call)) };
  return { ...request, ...(await toolOutputOf(turn, toolCallId, call)) };
}

/** Returns the answers of the user for the model. `toModelOutput` of the tools converts their outputs. */
async function toModelContent(
  sdk: ReplySdk,
  answered: readonly AnsweredRequest[],
  tools: ToolSet | undefined,
): Promise<ToolModelMessage['content']> {
  const approvals = answered.filter(isApproval).map((each) => toApprovalResponse(each, each.approvalId));
  const calls = answered.flatMap((each) => (isApproval(each) ? [] : [toCallPart(each)]));
  const message = { role: 'assistant', parts: calls } as unknown as UIMessage;
  const converted = await sdk.convertToModelMessages([message], tools && { tools });
  const results = converted.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  return [...(approvals as ToolModelMessage['content']), ...results];
}

/** Returns the messages of all steps. Version 7 has them here, and only those of the last step in its response. */
async function responseMessagesOf(result: {
  readonly response: PromiseLike<{ readonly messages: readonly ModelMessage[] }>;
  readonly responseMessages?: PromiseLike<readonly ModelMessage[]>;
}): Promise<readonly ModelMessage[]> {
  return (await result.responseMessages) ?? (await result.response).messages;
}

function outcomeOf(ui: UIStream, text: string): TurnOutcome {
  const outcome = {
    // Read when the handler has returned, so that the message has the chunks that the handler wrote after the answer.
    get messages() {
      return [fromAnswer(ui.message)];
    },
  };
  return text === '' ? turnOutcome(outcome) : reply(text, outcome);
}
