import { type TurnRun, type UseNote } from './run.js';

/** Returns the tool uses of the handler that returned the reply; null if no handler of the turn did. */
export function answerUses({ stored, attempts, uses }: TurnRun): readonly UseNote[] | null {
  const text = stored?.reply?.text ?? '';
  const answering = attempts.find(({ attempt }) => text.endsWith(` ${attempt}`));
  return answering ? uses.filter(({ attempt }) => attempt === answering.attempt) : null;
}
