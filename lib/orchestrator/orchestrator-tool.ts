import { checkInput, Must, Optional } from '../common/check-input.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { sha256 } from '../common/digests.js';
import { onAbort } from '../common/on-abort.js';
import { handOut } from '../turn/running-turn.js';
import { isAttemptedAgain } from '../turn/turn-stopped.error.js';
import { callName } from '../ledger/turn-step.js';
import { type TurnResult } from '../turn/turn-result.js';
import { inChildSession, inFreshSession } from './child-session.js';
import { type OrchestratorPlace } from './orchestrator-place.js';
import {
  TOOL_INPUT_SCHEMA,
  type OrchestratorToolInput,
  type ToolInputSchema,
  toToolInput,
} from './tool-input-schema.js';
import { type StepInfo, type TurnContext } from './turn-context.js';
import { assertCallId } from './turn-tool-calls.js';

export { type OrchestratorToolInput };

/** More than the answers of any loop. */
const ANSWERS_PER_ITERATION = 10_000;

/** The tool names that model providers accept. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Options of `handle.asTool`. */
export class OrchestratorToolOptions {
  /** 1 to 64 letters, digits, `_` or `-`. Default: the orchestrator's name, with `_` for all other characters. */
  @Optional()
  @Must((value) => typeof value === 'string' && NAME.test(value), 'must be 1 to 64 letters, digits, _ or -.')
  readonly name?: string;

  /** Tells the model what the tool is for. Default: a sentence with the orchestrator's name. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  readonly description?: string;

  /**
   * `child` (default) keeps one conversation, in the session `<caller's session>/<name>`. `fresh` uses a new session
   * for each call, which expires after the call.
   */
  @Optional()
  @Must((value) => value === 'child' || value === 'fresh', 'must be child or fresh.')
  readonly session?: 'child' | 'fresh';
}

/** The identity of a tool call, in the format of the AI SDK. */
export interface OrchestratorToolCall {
  /** The model's id of the call. If the calling turn is retried, the same call gets the same turn. */
  readonly toolCallId: string;
  /**
   * The messages that the model has answered with the call, as the AI SDK passes them. The number of answers after the last
   * message of the user distinguishes calls if later answers use an id again (FIX-63). Default: an id identifies a call in
   * all answers.
   */
  readonly messages?: readonly { readonly role: string }[] | undefined;
  /** Aborting it cancels the call's turn. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** The result that the model receives. */
type OrchestratorToolResult = Pick<TurnResult, 'status' | 'reply' | 'data'>;

/** An orchestrator as a tool, bound to one turn of another orchestrator (BOT-50). */
export interface OrchestratorTool {
  readonly name: string;
  readonly description: string;
  /** The JSON schema of the tool's arguments; also a Standard Schema. */
  readonly inputSchema: ToolInputSchema;
  /**
   * Runs one turn and waits for it. The call is a tool use of the calling turn, as with `turn.tools.use`: its plan must
   * allow the tool, and its tool history contains the use (FIX-24). Arguments other than `input` are ignored. It cannot
   * be called inside a step or another tool.
   * @throws ToolNotAllowedError; as `OrchestratorHandle.execute`; TurnReentryError when the calling chain already runs
   * a turn of the target session; SessionConflictError when another user owns the child session's id
   */
  readonly execute: (
    args: OrchestratorToolInput,
    call: OrchestratorToolCall,
  ) => Promise<Pick<TurnResult, 'status' | 'reply' | 'data'>>;
}

const tools = new WeakSet<object>();

/** Returns whether a tool was made by `handle.asTool`. Its calls are durable already. */
export function isOrchestratorTool(tool: object): boolean {
  return tools.has(tool);
}

/** The parts of the calling turn that the tool needs. */
export type OrchestratorToolCaller = Pick<TurnContext, 'id' | 'iteration' | 'session' | 'signal' | 'tools'>;

/** @param orchestrator the name of the orchestrator that is the tool */
export function orchestratorTool(
  orchestrator: string,
  place: () => OrchestratorPlace,
  caller: OrchestratorToolCaller,
  options: OrchestratorToolOptions = {},
): OrchestratorTool {
  const {
    name = orchestrator.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64),
    description = `Asks ${orchestrator} and waits for its answer.`,
    session = 'child',
  } = checkInput(OrchestratorToolOptions, options, 'options');
  const execute: OrchestratorTool['execute'] = async (args, call) => {
    const { toolCallId, abortSignal } = call;
    const checked = toToolInput(args);
    if (!('value' in checked)) throw new InvalidInputError('args', checked.issues[0].message);
    assertCallId(toolCallId, 'toolCallId');
    const { turns, sessions } = place();
    const { input } = checked.value;
    const runTurn = async (key: string, signal: AbortSignal): Promise<OrchestratorToolResult> => {
      const ask = (sessionId: string): Promise<TurnResult> =>
        turns.execute(orchestrator, input, {
          sessionId,
          idempotencyKey: key,
          attributes: { callerTurnId: caller.id, toolCallId: callName(toolCallId) },
          // Parallel calls of one answer must not end each other, whatever the option `turns.whenBusy` says.
          whenBusy: 'enqueue',
          signal,
        });
      const { status, reply, data } =
        session === 'child'
          ? await inChildSession(turns, sessions, caller.session, { name, key }, ask)
          : await inFreshSession(turns, sessions, caller.session, `${name}~${key.slice(0, 32)}`, ask);
      return { status, reply, ...(data === undefined ? {} : { data }) };
    };
    const work = (info: StepInfo): Promise<OrchestratorToolResult> =>
      whileWanted(caller.signal, abortSignal, (signal) => runTurn(sha256(info.key), signal));
    return caller.tools.use(name, toolCallId, work, { input, answer: answerOf(caller, call) });
  };
  const tool: OrchestratorTool = {
    name,
    description,
    inputSchema: TOOL_INPUT_SCHEMA,
    execute: (args, call) => handOut('asTool().execute', () => execute(args, call)),
  };
  tools.add(tool);
  return tool;
}

/**
 * Runs `work` with a signal that is aborted when the calling turn or the model's call is cancelled. If only the attempt
 * stops, because the turn will be retried, `work` continues unobserved, and the next attempt finds its result.
 */
async function whileWanted<T>(
  turn: AbortSignal,
  call: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = call ? AbortSignal.any([turn, call]) : turn;
  either.throwIfAborted();
  const cancel = new AbortController();
  let reject!: (reason: Error) => void;
  const stopped = new Promise<never>((_, rejected) => (reject = rejected));
  const stopWaiting = onAbort(either, () => {
    if (!isAttemptedAgain(turn)) cancel.abort(either.reason);
    reject(either.reason as Error);
  });
  try {
    return await Promise.race([work(cancel.signal), stopped]);
  } finally {
    stopWaiting();
  }
}

/**
 * Returns the number of the model's answer that contains a call: the same in every attempt, and another one for each answer
 * of a turn. A provider may use the ids of an answer again in later ones (FIX-63). Messages before the last one of the user
 * do not count: while a turn waits, a compaction can replace them.
 */
export function answerOf(
  { iteration }: Pick<TurnContext, 'iteration'>,
  { messages }: Pick<OrchestratorToolCall, 'messages'>,
): number | undefined {
  if (!messages) return undefined;
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const answers = messages.slice(asked + 1).filter(({ role }) => role === 'assistant').length;
  // Each iteration begins with a message of the user.
  return iteration * ANSWERS_PER_ITERATION + answers;
}
