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

/** What a turn has done, for those who look on. */
export interface TurnLog {
  /** The step as the model was asked first, and as the turn ended. */
  readonly from: string;
  readonly to: string;
  /** The tools that the model might use first. */
  readonly allowed: readonly string[];
  readonly results: readonly ToolResult[];
}

/** Asks a model, runs the tools that it calls, and gives it what came of them, until it answers the user. */
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

  /** Whatever goes wrong with a tool is an answer to the model, which may do better then. */
  private async call(turn: TurnContext, call: ToolCall, exchange: number): Promise<ToolResult> {
    const about = { tool: call.name, step: stepOf(turn) };
    // A model may make up names.
    if (!TOOLS.includes(call.name)) return { ...about, outcome: 'failed', content: `There is no tool ${call.name}.` };
    try {
      const run = ({ key }: StepInfo): Promise<string> | string => this.tools.run(turn, call, key);
      // The recorded model gives an id twice in a turn now and then; never twice in one answer.
      const callId = `${exchange} ${call.id}`;
      const content = await turn.tools.use(call.name, callId, run, { input: call.arguments });
      return { ...about, outcome: 'used', content };
    } catch (error) {
      if (error instanceof ToolNotAllowedError) return { ...about, outcome: 'refused', content: error.message };
      if (error instanceof AirlineToolError) return { ...about, outcome: 'failed', content: error.message };
      throw error;
    }
  }
}

function stepOf({ tools }: TurnContext): string {
  return tools.activeStep?.name ?? 'none';
}
