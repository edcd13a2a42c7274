import { tool, type Tool } from 'ai';
import { type StepInfo, type TurnContext } from 'nestjs-agent-sessions';
import { type ZodType } from 'zod';

/** What a tool could not do, in words for the model. */
export class ToolError extends Error {}

/** A tool of the SDK that runs through the plan of the turn, once for each call, whatever becomes of the attempt. */
export function turnTool<Input>(
  turn: TurnContext,
  name: string,
  description: string,
  inputSchema: ZodType<Input>,
  work: (input: Input, info: StepInfo) => Promise<string> | string,
): Tool<Input, string> {
  return tool<Input, string>({
    description,
    inputSchema,
    execute: (input: Input, { toolCallId }) => turn.tools.use(name, toolCallId, (info) => work(input, info), { input }),
  } as Tool<Input, string>);
}
