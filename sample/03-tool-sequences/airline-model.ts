import { type TurnContext } from 'nestjs-agent-sessions';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ToolResult {
  readonly tool: string;
  /** The step in which it was called. */
  readonly step: string;
  readonly outcome: 'used' | 'failed' | 'refused';
  /** What the model is told. */
  readonly content: string;
}

/** Calls of a model, and what came of them. */
export interface Exchange {
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

/** Either calls, or a text for the user. */
export interface ModelAnswer {
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

/**
 * Yours asks a provider here, with `turn.history`, `turn.input`, the exchanges of this turn, the definitions of those tools
 * that `turn.tools.allowed([...])` leaves, and the step's description from `turn.tools.toAIOrchestrationState()` as a system message.
 */
export abstract class AirlineModel {
  abstract next(turn: TurnContext, exchanges: readonly Exchange[]): Promise<ModelAnswer> | ModelAnswer;
}
