import { type ToolSet } from 'ai';
import { checkInput, Must, Optional } from '../common/check-input.js';
import { problemOf } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { withoutProxy } from '../common/thrown.js';
import { ToolFailedError, ToolNotAllowedError } from '../orchestration/orchestration.errors.js';
import { isOrchestratorTool } from '../orchestrator/orchestrator-tool.js';
import { type TurnContext } from '../orchestrator/turn-context.js';
import {
  callKeyOf,
  type CallingTurn,
  type CallOptions,
  callTool,
  decisionKeyOf,
  type Execute,
  type OnInterrupted,
  repairCall,
  type RepairToolCall,
} from './tool-call.js';
import { failAttempt } from './turn-failure.js';
import { approvalOf } from './user-answers.js';

/** The members of a turn that durable tools use. */
export type ToolTurn = CallingTurn & Pick<TurnContext, 'waitFor'>;

type Decide = (input: unknown, options: CallOptions) => unknown;

/** The option `toolApproval` of version 7: a function for all tools, or a status or function for each tool. */
export type ToolApproval = ((call: ApprovedCall) => unknown) | Readonly<Record<string, unknown>>;

interface ApprovedCall {
  readonly toolCall: CallOptions & { readonly input: unknown };
}

/** The functions of a tool, and how its interrupted calls are handled. */
interface ToolFunctions {
  readonly execute?: Execute;
  readonly needsApproval?: boolean | Decide;
  readonly onInterrupted?: unknown;
}

const ON_INTERRUPTED: readonly unknown[] = ['retry', 'report'] satisfies OnInterrupted[];
const ON_INTERRUPTED_RULE = 'must be retry or report.';

/** Options of {@link durableTools}. */
export class DurableToolsOptions {
  /**
   * How an interrupted call is handled: its tool had begun in an earlier attempt, which ended before the result was
   * stored (AIS-31). A tool may choose for itself, with a property of this name.
   *
   * - `retry` (default) runs the tool again, with the same key.
   * - `report` does not run it again: the model reads an `interrupted` error. Each call needs one more commit, which
   *   stores that it begins.
   */
  @Optional()
  @Must((value) => ON_INTERRUPTED.includes(value), ON_INTERRUPTED_RULE)
  onInterrupted?: 'retry' | 'report';
}

/**
 * Returns tools of the AI SDK whose calls are stored steps under the session's plan (AIS-03). A later attempt gets the
 * stored result, or the stored failure, and does not run the tool again. The model reads the error of a tool, and why
 * the plan rejects a call.
 *
 * - A result is stored as `JSON.stringify` writes it: dates become strings. The model gets the stored value. Of a tool
 *   that yields preliminary results, only the last one is stored.
 * - If the process dies before the result is stored, the tool runs again. Pass {@link idempotencyKeyOf} to the system
 *   that it changes. If that system accepts no key, let the tool report instead: `{ ...tool, onInterrupted: 'report' }`.
 * - A tool with `needsApproval` waits for the signal {@link approvalSignal} before it runs. If `needsApproval` is a
 *   function, its decision is stored.
 * - A call stops with its turn only. Its `abortSignal` ignores the timeouts of the SDK.
 * - An error with `permanent: true`, a call id that is in use with another input, and an unavailable store fail the
 *   attempt: every further call of a {@link durableModel} of this turn throws the error.
 * - Ids of calls may have any length, and later answers of a loop may use them again (FIX-63).
 * - A tool that runs inside of another one, as those of a sub-agent, belongs to that call: the plan does not count it,
 *   and it cannot wait for an approval.
 *
 * Tools without `execute`, which a client or the provider runs, are not stored. Tools of `handle.asTool` are durable
 * already, and stay as they are.
 * @throws InvalidInputError
 */
export function durableTools<Tools extends ToolSet>(
  turn: ToolTurn,
  tools: Tools,
  options: DurableToolsOptions = {},
): Tools {
  const checked = checkInput(DurableToolsOptions, options, 'options');
  return mapTools(tools, (tool, name) => approvedTool(turn, storedTool(turn, tool, name, checked), name));
}

/** Works like {@link durableTools}, but leaves approvals to the SDK. */
export function storedTools<Tools extends ToolSet>(
  turn: CallingTurn,
  tools: Tools,
  options: DurableToolsOptions,
): Tools {
  const checked = checkInput(DurableToolsOptions, options, 'options');
  return mapTools(tools, (tool, name) => storedTool(turn, tool, name, checked));
}

function mapTools<Tools extends ToolSet>(
  tools: Tools,
  map: (tool: ToolFunctions, name: string) => ToolFunctions,
): Tools {
  const mapped = Object.entries(tools).map(([name, tool]) => [
    name,
    isOrchestratorTool(tool) ? tool : map(tool as ToolFunctions, name),
  ]);
  return Object.fromEntries(mapped) as Tools;
}

function storedTool(
  turn: CallingTurn,
  tool: ToolFunctions,
  name: string,
  { onInterrupted: byDefault = 'retry' }: DurableToolsOptions,
): ToolFunctions {
  const { execute, needsApproval, onInterrupted = byDefault } = tool;
  assertOnInterrupted(onInterrupted, `tools.${name}.onInterrupted`);
  const called = execute && { name, execute: execute.bind(tool), onInterrupted };
  return {
    ...tool,
    ...(called && {
      execute: (input, options) => forModel(turn, () => callTool(turn, called, input, options)),
    }),
    ...(typeof needsApproval === 'function' && {
      needsApproval: storedDecision(turn, 'needs approval', needsApproval.bind(tool)),
    }),
  };
}

function assertOnInterrupted(value: unknown, path: string): asserts value is OnInterrupted {
  if (!ON_INTERRUPTED.includes(value)) throw new InvalidInputError(path, problemOf(ON_INTERRUPTED_RULE, value));
}

/** Returns `toolApproval` with functions whose decisions are stored. */
export function storedApproval(turn: CallingTurn, approval: ToolApproval): ToolApproval {
  const stored = (decide: Decide): Decide => storedDecision(turn, 'tool approval', decide);
  if (typeof approval === 'function') {
    return (call) => stored(() => approval(call))(call.toolCall.input, call.toolCall);
  }
  const mapped = Object.entries(approval).map(([name, status]) => [
    name,
    typeof status === 'function' ? stored(status as Decide) : status,
  ]);
  return Object.fromEntries(mapped) as ToolApproval;
}

/** Another decision in a later attempt could deny a call that the user has approved, or run one that the user denied. */
function storedDecision(turn: CallingTurn, step: string, decide: Decide): Decide {
  return async (input, options) => {
    const decision = await turn.step(step, async () => decide(input, options), { key: decisionKeyOf(input, options) });
    // Steps store `undefined` as `null`, which version 7 does not accept.
    return decision ?? undefined;
  };
}

/** Returns a repair of tool calls whose results are stored. Another repair in a later attempt would be another call. */
export function storedRepair(turn: CallingTurn, repair: RepairToolCall): RepairToolCall {
  return (options) => forModel(turn, () => repairCall(turn, repair, options));
}

/** Returns a tool that asks for its approval itself, in place of the SDK. */
function approvedTool(turn: ToolTurn, tool: ToolFunctions, name: string): ToolFunctions {
  const { execute, needsApproval, ...rest } = tool;
  if (!execute || !needsApproval) return tool;
  const approved: Execute = async (input, options) => {
    const { toolCallId } = options;
    await forModel(turn, async () => {
      if (needsApproval !== true && !(await needsApproval(input, options))) return;
      const { approved, reason } = await approvalOf(turn, toolCallId, callKeyOf(turn, input, options));
      const denial = `The user has denied this call${reason ? `: ${reason}` : '.'}`;
      if (!approved) throw new ToolFailedError(name, toolCallId, denial);
    });
    return execute(input, options);
  };
  return { ...rest, execute: approved };
}

/** The SDK gives all errors of a tool to the model. Those that are not for the model fail the attempt. */
async function forModel<T>(turn: CallingTurn, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = withoutProxy(thrown);
    // Version 7 shows the name of the error to the model.
    if (ToolFailedError.isInstance(error)) throw new Error(error.message, { cause: thrown });
    if (!isRefusal(error)) failAttempt(turn, error);
    throw error;
  }
}

/** Returns whether the plan rejects the call. If an error has the id of a turn, another turn's plan has rejected it. */
function isRefusal(error: unknown): boolean {
  return ToolNotAllowedError.isInstance(error) && error.turnId === undefined;
}
