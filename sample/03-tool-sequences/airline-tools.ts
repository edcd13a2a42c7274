import { type TurnContext } from 'nestjs-agent-sessions';
import { type ToolCall } from './airline-model.js';

/** A failure of a tool, with a message for the model. */
export class AirlineToolError extends Error {}

/** Replace this by calls of the airline's systems. */
export abstract class AirlineTools {
  /**
   * @param key an idempotency key for effects that must happen once; the same when the call is retried after a crash
   * @throws AirlineToolError
   */
  abstract run(turn: TurnContext, call: ToolCall, key: string): Promise<string> | string;
}
