import { type TurnContext } from 'nestjs-agent-sessions';
import { type ToolCall } from './airline-model.js';

/** What a tool could not do, in words for the model. */
export class AirlineToolError extends Error {}

/** Yours calls the airline's systems here. */
export abstract class AirlineTools {
  /**
   * @param key the same when the call is tried again after a crash: an idempotency key for what must not happen twice
   * @throws AirlineToolError
   */
  abstract run(turn: TurnContext, call: ToolCall, key: string): Promise<string> | string;
}
