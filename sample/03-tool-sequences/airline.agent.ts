import {
  Intent,
  Orchestrator,
  reply,
  type StepInfo,
  ToolNotAllowedError,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { AIRLINE_STEPS, TOOLS } from './airline-plan.js';
import { AirlineModel, type Exchange, type ToolCall, type ToolResult } from './airline-model.js';
import { AirlineToolError, AirlineTools } from './airline-tools.js';

/** A report of a turn for observers. */
export interface TurnLog {
  /** The active step at the first model call, and at the end of the turn. */
  readonly from: string;
  readonly to: string;
  /** The allowed tools at the first model call. */
  readonly allowed: readonly string[];
  readonly results: readonly ToolResult[];
}

/** Calls a model, runs the requested tools, and returns their results to the model until it answers the user. */
@Orchestrator({ name: 'airline', steps: AIRLINE_STEPS })
export class AirlineAgent {
  constructor(
    private readonly model: AirlineModel,
    private readonly tools: AirlineTools,
  ) {}

  @Intent()
  async serve(turn: TurnContext): Promise<TurnOutcome> {
    const from = stepOf(turn);
    const allowed = turn.tools.allowed(TOOLS);
    const exchanges: Exchange[] = [];
    for (;;) {
      const { text, calls } = await turn.step('ask the model', () => this.model.next(turn, exchanges));
      if (calls.length === 0) {
        const results = exchanges.flatMap((exchange) => exchange.results);
        const log: TurnLog = { from, to: stepOf(turn), allowed, results };
        return reply(text, { data: log });
      }
      const results: ToolResult[] = [];
      for (const call of calls) results.push(await this.call(turn, call, exchanges.length));
      exchanges.push({ calls, results });
    }
  }

  /** Returns tool failures to the model, which may then correct itself. */
  private async call(turn: TurnContext, call: ToolCall, exchange: number): Promise<ToolResult> {
    const about = { tool: call.name, step: stepOf(turn) };
    // A model may invent tool names.
    if (!TOOLS.includes(call.name)) return { ...about, outcome: 'failed', content: `There is no tool ${call.name}.` };
    try {
      const run = ({ key }: StepInfo): Promise<string> | string => this.tools.run(turn, call, key);
      // The recorded model sometimes repeats an id within a turn, but never within one answer.
      const callId = `${exchange} ${call.id}`;
      const content = await turn.tools.use(call.name, callId, run, { input: call.arguments });
      return { ...about, outcome: 'used', content };
    } catch (error) {
      if (ToolNotAllowedError.isInstance(error)) return { ...about, outcome: 'refused', content: error.message };
      if (error instanceof AirlineToolError) return { ...about, outcome: 'failed', content: error.message };
      throw error;
    }
  }
}

function stepOf({ tools }: TurnContext): string {
  return tools.activeStep?.name ?? 'none';
}
