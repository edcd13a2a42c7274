import { Allow } from 'class-validator';
import { approvalSignal, toolOutputSignal } from '../chat/user-signals.js';
import { Must, MustBeBoolean, Optional } from '../common/check-input.js';
import { type TurnContext } from '../orchestrator/turn-context.js';

/** The user's answer to the approval request of a tool call: the payload of its signal. */
export class ApprovalAnswer {
  @MustBeBoolean()
  approved!: boolean;

  /** Why the user approved or denied the call. The model reads the reason of a denial. Default: none. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  reason?: string;
}

/** The output of a tool that the client runs: the payload of its signal. */
export class ToolOutput {
  /** The result, as JSON. Default: `null`. */
  @Allow()
  output?: unknown;

  /** Why the tool failed. The model reads it in place of the result. Default: the tool has not failed. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  errorText?: string;
}

type WaitingTurn = Pick<TurnContext, 'waitFor' | 'tools'>;

/** The calls that have asked the user, by attempt and name of signal. The handlers of an attempt share one `tools`. */
const asked = new WeakMap<WaitingTurn['tools'], Map<string, string[]>>();

/**
 * Waits for the user's answer. The attempt ends until it arrives.
 * @param call identifies the call among those with its id
 */
export function approvalOf(turn: WaitingTurn, toolCallId: string, call: string): Promise<ApprovalAnswer> {
  const earlier = callsBefore(turn, approvalSignal(toolCallId), call);
  return turn.waitFor(approvalSignal(toolCallId, { earlier }), { schema: ApprovalAnswer });
}

/** Waits for the output of a tool that the client runs. The attempt ends until it arrives. @param call as above */
export function toolOutputOf(turn: WaitingTurn, toolCallId: string, call: string): Promise<ToolOutput> {
  const earlier = callsBefore(turn, toolOutputSignal(toolCallId), call);
  return turn.waitFor(toolOutputSignal(toolCallId, { earlier }), { schema: ToolOutput });
}

/** Counts earlier calls with the same id: the answer of one must not be taken for that of another (FIX-63). */
function callsBefore({ tools }: WaitingTurn, signal: string, call: string): number {
  const ofTurn = asked.get(tools) ?? new Map<string, string[]>();
  asked.set(tools, ofTurn);
  const calls = ofTurn.get(signal) ?? [];
  ofTurn.set(signal, calls);
  if (!calls.includes(call)) calls.push(call);
  return calls.indexOf(call);
}
