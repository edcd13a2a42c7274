import { type TurnContext } from 'nestjs-agent-sessions';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ToolResult {
  readonly tool: string;
  /** The step that was active at the call. */
  readonly step: string;
  readonly outcome: 'used' | 'failed' | 'refused';
  /** The result or the error message that the model receives. */
  readonly content: string;
}

/** The tool calls of one model answer, with their results. */
export interface Exchange {
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

/** An answer of the model: either tool calls, or a message to the user. */
export interface ModelAnswer {
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

/**
 * Replace this by a call of your provider with `turn.history`, `turn.input`, the exchanges of this turn, the definitions of the tools that
 * `turn.tools.allowed([...])` returns, and the step's description from `turn.tools.toAIOrchestrationState()` as a system message.
 */
export abstract class AirlineModel {
  abstract next(turn: TurnContext, exchanges: readonly Exchange[]): Promise<ModelAnswer> | ModelAnswer;
}
