import { type TurnRun, type UseNote } from './run.js';

/** The uses of tools by the handler that gave the turn's answer; null when no handler of the turn did. */
export function answerUses({ stored, attempts, uses }: TurnRun): readonly UseNote[] | null {
  const text = stored?.reply?.text ?? '';
  const answering = attempts.find(({ attempt }) => text.endsWith(` ${attempt}`));
  return answering ? uses.filter(({ attempt }) => attempt === answering.attempt) : null;
}
