import { tool, type Tool } from 'ai';
import { type StepInfo, type TurnContext } from 'nestjs-agent-sessions';
import { type ZodType } from 'zod';

/** A failure of a tool, with a message for the model. */
export class ToolError extends Error {}

/** Creates a tool of the SDK that the turn's plan checks. It runs once per call, also if the attempt fails. */
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
