import { type Script } from '../actor/script.js';
import { type TurnRun } from './run.js';

/** Returns the script in the turn's message. */
export function scriptOf({ stored }: TurnRun): Script | undefined {
  return stored?.request.input.metadata as Script | undefined;
}
