import {
  Intent,
  Orchestrator,
  reply,
  ToolNotAllowedError,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { AIRLINE_STEPS, HEAR_USER, TOOLS } from './airline-plan.js';
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
    await turn.tools.use(HEAR_USER, turn.id, () => null);
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
      for (const call of calls) results.push(await this.call(turn, call));
      exchanges.push({ calls, results });
    }
  }

  /** Whatever goes wrong with a tool is an answer to the model, which may do better then. */
  private async call(turn: TurnContext, call: ToolCall): Promise<ToolResult> {
    const about = { tool: call.name, step: stepOf(turn) };
    // Whatever a model makes up, above all HEAR_USER: it must not renew the user's yes by itself.
    if (!TOOLS.includes(call.name)) return { ...about, outcome: 'failed', content: `There is no tool ${call.name}.` };
    try {
      const content = await turn.tools.use(call.name, call.id, ({ key }) => this.tools.run(turn, call, key));
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
