import { isData, type PartFields } from './chunk-fields.js';
import { type MessageFold } from './message-fold.js';

/** Returns the parts of a step, from 1; 0 are the parts before the first step. */
export function partsOfStep({ parts }: MessageFold, step: number): readonly PartFields[] {
  const steps: PartFields[][] = [[]];
  for (const part of parts) {
    if (part.type === 'step-start') steps.push([]);
    else steps[steps.length - 1].push(part);
  }
  return steps[step] ?? [];
}

/**
 * Returns the part of another message that corresponds to a part: the same call, the data with the same id, or the part
 * of the same type and number. Data corresponds to data of any step, all other parts to parts of the same step.
 */
export function counterpart(part: PartFields, message: MessageFold, other: MessageFold): PartFields | undefined {
  const scope = (fold: MessageFold): readonly PartFields[] =>
    isData(part) ? fold.parts : partsOfStep(fold, stepOf(part, message));
  const like = (fold: MessageFold) => scope(fold).filter((candidate) => identityOf(candidate) === identityOf(part));
  return like(other)[like(message).indexOf(part)];
}

function stepOf(part: PartFields, { parts }: MessageFold): number {
  return parts.slice(0, parts.indexOf(part)).filter(({ type }) => type === 'step-start').length;
}

function identityOf(part: PartFields): string {
  if (part.toolCallId !== undefined) return `call ${part.toolCallId}`;
  return isData(part) && part.id !== undefined ? `${part.type} ${part.id}` : part.type;
}
