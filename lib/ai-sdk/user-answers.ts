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

type WaitingTurn = Pick<TurnContext, 'waitFor'>;

/** Waits for the user's answer. The attempt ends until it arrives. */
export function approvalOf(turn: WaitingTurn, toolCallId: string): Promise<ApprovalAnswer> {
  return turn.waitFor(approvalSignal(toolCallId), { schema: ApprovalAnswer });
}

/** Waits for the output of a tool that the client runs. The attempt ends until it arrives. */
export function toolOutputOf(turn: WaitingTurn, toolCallId: string): Promise<ToolOutput> {
  return turn.waitFor(toolOutputSignal(toolCallId), { schema: ToolOutput });
}
