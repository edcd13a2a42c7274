import { type Script } from '../actor/script.js';
import { type TurnRun } from './run.js';

/** What the turn's message tells its handler to do. */
export function scriptOf({ stored }: TurnRun): Script | undefined {
  return stored?.request.input.metadata as Script | undefined;
}
