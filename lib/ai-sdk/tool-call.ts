import { AsyncLocalStorage } from 'node:async_hooks';
import { mintId } from '../common/ids.js';
import { type JsonValue, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { INTERRUPTED } from '../ledger/interrupted-result.js';
import { callName } from '../ledger/turn-step.js';
import { ToolFailedError } from '../orchestration/orchestration.errors.js';
import { answerOf } from '../orchestrator/orchestrator-tool.js';
import { toolResult } from '../orchestrator/tool-result.js';
import { type StepInfo, type TurnContext } from '../orchestrator/turn-context.js';

/** The second argument of a tool's functions: the fields that this package reads. */
export interface CallOptions {
  readonly toolCallId: string;
  /** The messages that the model has answered with the call. */
  readonly messages?: readonly { readonly role: string }[];
}

/** The function `execute` of a tool. */
export type Execute = (input: unknown, options: CallOptions) => unknown;

/** How a call is handled whose tool had begun in an earlier attempt, which has stored no result. */
export type OnInterrupted = 'retry' | 'report';

/** A tool that the server runs. */
export interface CalledTool {
  readonly name: string;
  readonly execute: Execute;
  readonly onInterrupted: OnInterrupted;
}

interface CallId {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** The argument of the option `repairToolCall`: the fields that this package reads. */
interface CallToRepair {
  readonly toolCall: CallId & { readonly input: string };
}

/** The option `repairToolCall`: returns a valid call, or `null`. */
export type RepairToolCall = (options: CallToRepair) => Promise<unknown>;

/** The members of a turn that tool calls use. */
export type CallingTurn = Pick<TurnContext, 'id' | 'iteration' | 'step' | 'tools'>;

/** The idempotency key of each call, by the options that its tool receives. */
const keys = new WeakMap<object, string>();
/** The turn whose tool the current code runs in. */
const enclosing = new AsyncLocalStorage<CallingTurn>();

/**
 * Returns the idempotency key of a tool call, which is the same in every attempt. Call it in `execute` of a tool of
 * {@link durableTools}.
 * @param options the second argument of `execute`
 * @throws InvalidInputError
 */
export function idempotencyKeyOf(options: object): string {
  const key = keys.get(options);
  if (key !== undefined) return key;
  throw new InvalidInputError('options', 'must be the second argument of `execute` of a tool of durableTools.');
}

/**
 * Runs a tool as a stored step, or returns the stored result.
 * @throws ToolNotAllowedError; ToolFailedError for what the tool throws, also in later attempts, and for an interrupted
 * call that is reported (AIS-31); what must fail the attempt
 */
export async function callTool(
  turn: CallingTurn,
  { name, execute, onInterrupted }: CalledTool,
  input: unknown,
  options: CallOptions,
): Promise<unknown> {
  const work = async ({ key, signal, step }: StepInfo): Promise<unknown> => {
    if (onInterrupted === 'report') await storeStart(step);
    const own = { ...options, abortSignal: signal };
    keys.set(own, key);
    return enclosing.run(turn, async () => {
      const result = await lastOf(execute(input, own));
      // What a tool returns when it is aborted is not its result (AIS-31).
      signal.throwIfAborted();
      return parsed(asText(result), `The result of tool ${name}`);
    });
  };
  const { toolCallId } = options;
  const compared = comparable(name, toolCallId, input);
  if (enclosing.getStore() !== turn) {
    return turn.tools.use(name, toolCallId, work, { ...compared, answer: answerOf(turn, options), storeFailure: true });
  }
  return storedResult(turn, { step: name, key: callKeyOf(turn, input, options) }, { toolName: name, toolCallId }, work);
}

/**
 * Repairs a call as a stored step, or returns the stored repair.
 * @throws ToolFailedError for what the repair throws, also in later attempts; what must fail the attempt
 */
export function repairCall(turn: CallingTurn, repair: RepairToolCall, options: CallToRepair): Promise<unknown> {
  const { toolCall } = options;
  const place = { step: 'repair tool call', key: decisionKeyOf(toolCall.input, toolCall) };
  return storedResult(turn, place, toolCall, () => repair(options));
}

/** Runs a step of a call. Its failure is stored as a result, too. @throws ToolFailedError */
async function storedResult(
  turn: CallingTurn,
  { step, key }: { readonly step: string; readonly key: string },
  { toolName, toolCallId }: CallId,
  work: (info: StepInfo) => unknown,
): Promise<unknown> {
  const called = { tool: toolName, turnId: turn.id };
  const { value, failure } = await turn.step(step, (info) => toolResult(called, work, info), { key });
  if (failure !== undefined) throw new ToolFailedError(toolName, toolCallId, failure);
  return value;
}

/** Returns the key of a step that belongs to a call. Another input is another call (FIX-63). */
export function callKeyOf(turn: Pick<CallingTurn, 'iteration'>, input: unknown, options: CallOptions): string {
  return callName(JSON.stringify([decisionKeyOf(input, options), answerOf(turn, options)]));
}

/**
 * Returns the key of the decision whether a call needs approval. It omits the number of the answer, because the SDK may
 * ask again when the answer is already part of the messages.
 */
export function decisionKeyOf(input: unknown, { toolCallId }: CallOptions): string {
  return callName(JSON.stringify([toolCallId, textOf(input)]));
}

/**
 * Stores that a call has begun, before its tool runs.
 * @throws an error that the model reads, if the call had begun before
 */
async function storeStart(step: StepInfo['step']): Promise<void> {
  const own = mintId();
  const stored = await step('start of the call', () => own);
  if (stored !== own) throw new Error(INTERRUPTED);
}

/** Returns the result of a tool, or the last value of a tool that yields preliminary results. */
async function lastOf(result: unknown): Promise<unknown> {
  const value = await result;
  if (typeof value !== 'object' || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const each of value as AsyncIterable<unknown>) last = each;
  return last;
}

/**
 * Returns the input for comparison in later attempts. Input that JSON cannot represent, because a schema has transformed
 * it, is not compared.
 * @throws ToolFailedError for JSON that is rejected, such as a key named `__proto__`: the model reads why (FIX-64)
 */
function comparable(name: string, callId: string, input: unknown): { readonly input?: JsonValue } {
  const text = textOf(input);
  if (text === undefined) return {};
  try {
    return { input: parsed(text, 'input') };
  } catch (error) {
    throw new ToolFailedError(name, callId, (error as Error).message, { cause: error });
  }
}

/** Returns the input as JSON; `undefined` if JSON cannot represent it. */
function textOf(input: unknown): string | undefined {
  try {
    return asText(input);
  } catch {
    return undefined;
  }
}

function asText(value: unknown): string {
  return JSON.stringify(value ?? null);
}

/** @throws an error that a model reads, unlike StateSerializationError, which fails the attempt */
function parsed(text: string, path: string): JsonValue {
  try {
    return toJson(JSON.parse(text), path);
  } catch (error) {
    throw new Error((error as Error).message, { cause: error });
  }
}
